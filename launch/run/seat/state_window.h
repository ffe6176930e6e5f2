#ifndef SIPHON_LAUNCH_RUN_SEAT_STATE_WINDOW_H_
#define SIPHON_LAUNCH_RUN_SEAT_STATE_WINDOW_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipeline/stage_compute.h"
#include "pipeline/state_swaps.h"
#include "planner/status.h"

namespace siphon {

// A tensor of a stage's state as the host reads or writes it, one at a time: the memory itself
// where that is the host's, else a copy, which goes back when it was written to.
//
// Thread-safety: one thread, the worker's.
class StateWindow {
 public:
  using Access = StateSwaps::Access;

  // `tensor`: of compute.State(), with its memory. What the window had before is closed first.
  // Errors: those of the stage.
  absl::StatusOr<absl::Span<std::byte>> Open(StageCompute& compute, const StateTensor& tensor,
                                             Access access) {
    SIPHON_RETURN_IF_ERROR(Close());
    if (tensor.on_host) return tensor.bytes;
    copy_.resize(tensor.bytes.size());
    SIPHON_RETURN_IF_ERROR(compute.CopyToHost(tensor.bytes, absl::MakeSpan(copy_)));
    if (access == Access::kWrite) {
      changed_ = &compute;
      there_ = tensor.bytes;
    }
    return absl::MakeSpan(copy_);
  }
  // Behind this the stage has what was written.
  absl::Status Close() {
    StageCompute* const changed = std::exchange(changed_, nullptr);
    return changed == nullptr ? absl::OkStatus() : changed->CopyFromHost(copy_, there_);
  }

 private:
  std::vector<std::byte> copy_;
  StageCompute* changed_ = nullptr;  // null: nothing has to go back
  absl::Span<std::byte> there_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SEAT_STATE_WINDOW_H_
