#ifndef SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_STAGE_H_
#define SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_STAGE_H_

#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/stage_compute.h"
#include "pipeline/synthetic/work_clock.h"
#include "planner/ids.h"
#include "planner/model_profile.h"
#include "planner/stage_partition.h"
#include "swap/memory_ledger.h"

namespace siphon {

// What a synthetic stage uses of its worker. The ledger outlives the stage.
struct SyntheticWorker {
  MemoryLedger* ledger = nullptr;
  WorkClock clock;
  // Of an optimizer step on the host: how long that of the whole stage takes, and what lets one
  // worker after the other have the host (null: nobody shares it).
  Nanos host_step;
  std::mutex* host = nullptr;
};

// A stage that computes nothing: its passes take the time that `profile` has for them, layer by
// layer, its tensors are memory of the sizes that the profile has for them, on the worker's books
// by the rules of planner/simulator/simulate.h. So a step shows what a plan makes of time and
// memory, and many workers share few processors.
//
// Tensors are filled with bytes that depend on what they stand for (SyntheticKey), and looked at
// where a real stage would read them: a message of another stage or microbatch, or saved bytes that
// are not what they were, is DataLoss, naming the place. Losses, norms, parameters and optimizer
// state after a step depend on the step, the microbatches that were added up and the update's
// settings, and on nothing else.
//
// Memory: the boundary that is made counts from the begin of the last layer on, what came in until
// the pass is through; the rest as in SyntheticActivations. Parameters, gradients and optimizer
// state are there from the first to the last moment of the stage, unless they are freed.
//
// The stage has no parameters that other stages share, and its state cannot be loaded from a
// checkpoint. The groups of `away` are freed at first (StateMemory). `profile` outlives the stage.
// Errors: InvalidArgument for a stage that the partition or the profile does not have;
// ResourceExhausted.
absl::StatusOr<std::unique_ptr<StageCompute>> MakeSyntheticStage(
    const ModelProfile& profile, const StagePartition& partition, StageId stage,
    SyntheticWorker worker, const std::vector<StateGroup>& away = {});

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_SYNTHETIC_STAGE_H_
