#ifndef SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_KEYS_H_
#define SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_KEYS_H_

#include <cstdint>

#include "planner/keyed_hash.h"

namespace siphon {

// What synthetic bytes and numbers stand for; part of their key.
enum class SyntheticContent : uint64_t {
  kSaved = 1,           // of a layer, for its backward
  kOutput = 2,          // of the last layer of a stage
  kOutputGradient = 3,  // likewise
  kWeightGradient = 4,  // of a layer, by one microbatch
  kLoss = 5,
  kParameters = 6,
  kGradients = 7,
  kOptimizerState = 8,
};

struct SyntheticPlace {
  int64_t step = 0;
  int layer = 0;
  int microbatch = 0;
};

inline uint64_t SyntheticKey(SyntheticContent content, const SyntheticPlace& place) {
  return KeyedHash(RandomPurpose::kSyntheticData,
                   {static_cast<uint64_t>(content), static_cast<uint64_t>(place.step),
                    static_cast<uint64_t>(place.layer), static_cast<uint64_t>(place.microbatch)});
}

// In [0, 1), with the 24 bits that a float has.
inline float SyntheticNumber(uint64_t key) { return static_cast<float>(key >> 40) * 0x1.0p-24f; }

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_KEYS_H_
