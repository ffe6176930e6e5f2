#include "pipeline/await_copy.h"

#include "planner/status.h"

namespace siphon {
namespace {

template <typename Wait>
absl::Status AwaitUnless(absl::StatusOr<bool> done, StepRecorder* recorder, const Wait& wait) {
  SIPHON_RETURN_IF_ERROR(done.status());
  if (*done) return absl::OkStatus();
  if (recorder != nullptr) recorder->BeginWait();
  SIPHON_RETURN_IF_ERROR(wait());
  if (recorder != nullptr) recorder->EndWait();
  return absl::OkStatus();
}

}  // namespace

absl::Status AwaitOut(SwapEngine& engine, const ParkedGroup& group, StepRecorder* recorder) {
  return AwaitUnless(engine.IsOut(group), recorder, [&] { return engine.WaitOut(group); });
}

absl::Status AwaitIn(SwapEngine& engine, const ParkedGroup& group, StepRecorder* recorder) {
  return AwaitUnless(engine.IsIn(group), recorder, [&] { return engine.WaitIn(group); });
}

}  // namespace siphon
