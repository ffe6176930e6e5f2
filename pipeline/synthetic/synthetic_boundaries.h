#ifndef SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_BOUNDARIES_H_
#define SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_BOUNDARIES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipeline/stage_compute.h"
#include "pipeline/synthetic/booked_block.h"
#include "planner/ids.h"
#include "planner/stage_partition.h"
#include "planner/units.h"
#include "swap/memory_ledger.h"

namespace siphon {

// What a stage's boundaries are, as far as sizes go. 0 bytes where there is none.
struct BoundarySizes {
  StageRange stage;
  Bytes input;
  Bytes output;
};

// The boundary tensors of one stage in one step. What is made is filled with bytes that say what it
// is; what came in must have those of the right stage and microbatch.
//
// Thread-safety: one thread.
class SyntheticBoundaries {
 public:
  // The ledger outlives it.
  SyntheticBoundaries(BoundarySizes sizes, MemoryLedger* ledger) : sizes_(sizes), ledger_(ledger) {}

  void BeginStep(int64_t step, int microbatches);
  bool IsThere(Boundary boundary, MicrobatchId microbatch) const {
    return At(boundary, microbatch).has_value();
  }
  // Room for what is received; what is there already stays. Errors: ResourceExhausted.
  absl::Status TakeRoom(Boundary boundary, MicrobatchId microbatch);
  // Requires: it is there.
  absl::Span<std::byte> BytesOf(Boundary boundary, MicrobatchId microbatch) const {
    return At(boundary, microbatch)->bytes();
  }
  // Makes an output, or a gradient of the input. Errors: ResourceExhausted.
  absl::Status Fill(Boundary boundary, MicrobatchId microbatch);
  // Errors: DataLoss when what came in is something else. Requires: it is there.
  absl::Status Check(Boundary boundary, MicrobatchId microbatch) const;
  void Free(Boundary boundary, MicrobatchId microbatch) { At(boundary, microbatch).reset(); }

 private:
  static constexpr size_t kBoundaries = 4;
  using Blocks = std::array<std::optional<BookedBlock>, kBoundaries>;

  std::optional<BookedBlock>& At(Boundary boundary, MicrobatchId microbatch) {
    return blocks_[static_cast<size_t>(microbatch.value)][static_cast<size_t>(boundary)];
  }
  const std::optional<BookedBlock>& At(Boundary boundary, MicrobatchId microbatch) const {
    return blocks_[static_cast<size_t>(microbatch.value)][static_cast<size_t>(boundary)];
  }
  // The same at both sides of the boundary.
  uint64_t KeyOf(Boundary boundary, MicrobatchId microbatch) const;

  const BoundarySizes sizes_;
  MemoryLedger* const ledger_;
  int64_t step_ = 0;
  std::vector<Blocks> blocks_;  // [microbatch]
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_BOUNDARIES_H_
