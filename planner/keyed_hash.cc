#include "planner/keyed_hash.h"

#include "planner/status.h"

namespace siphon {
namespace {

// splitmix64's increment (the golden ratio in 64 bits) and finaliser: Steele, Lea, Flood 2014,
// figure 17.
constexpr uint64_t kGoldenGamma = 0x9E3779B97F4A7C15ull;

constexpr uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Each number goes through the mixer together with all before it, so that order matters.
constexpr uint64_t Absorb(uint64_t state, uint64_t number) {
  return Mix(state + kGoldenGamma + Mix(number + kGoldenGamma));
}

}  // namespace

uint64_t KeyedHash(RandomPurpose purpose, std::initializer_list<uint64_t> numbers) {
  uint64_t state = Absorb(0, static_cast<uint64_t>(purpose));
  for (const uint64_t number : numbers) state = Absorb(state, number);
  return Absorb(state, numbers.size());
}

uint64_t KeyedHash(RandomPurpose purpose, uint64_t seed, absl::string_view text) {
  uint64_t state = Absorb(Absorb(0, static_cast<uint64_t>(purpose)), seed);
  for (const char c : text) state = Absorb(state, static_cast<unsigned char>(c));
  return Absorb(state, text.size());
}

uint32_t FoldTo32(uint64_t key) { return static_cast<uint32_t>(key ^ (key >> 32)); }

uint64_t KeyedGenerator::Next() { return Mix(state_ += kGoldenGamma); }

uint64_t KeyedGenerator::Below(uint64_t bound) {
  SIPHON_CHECK(bound > 0, "KeyedGenerator::Below needs a positive bound");
  // Numbers in the incomplete last cycle of `bound` are drawn again, or small results would come
  // too often.
  const uint64_t complete = UINT64_MAX - UINT64_MAX % bound;
  uint64_t draw = Next();
  while (draw >= complete) draw = Next();
  return draw % bound;
}

double KeyedGenerator::Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

}  // namespace siphon
