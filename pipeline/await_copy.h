#ifndef SIPHON_PIPELINE_AWAIT_COPY_H_
#define SIPHON_PIPELINE_AWAIT_COPY_H_

#include "absl/status/status.h"
#include "pipeline/step_recorder.h"
#include "swap/swap_engine.h"

namespace siphon {

// SwapEngine::WaitOut and WaitIn, with the time written down as a wait if there is any. `recorder`
// may be null: outside of steps. Errors: the engine's.
absl::Status AwaitOut(SwapEngine& engine, const ParkedGroup& group, StepRecorder* recorder);
absl::Status AwaitIn(SwapEngine& engine, const ParkedGroup& group, StepRecorder* recorder);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_AWAIT_COPY_H_
