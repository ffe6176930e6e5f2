#ifndef SIPHON_PIPELINE_CARRIED_STATE_H_
#define SIPHON_PIPELINE_CARRIED_STATE_H_

#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pipeline/stage_compute.h"
#include "pipeline/state_memory.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "planner/units.h"
#include "swap/swap_engine.h"

namespace siphon {

// What of training state is away between steps, as the engine knows it.
struct ParkedState {
  ParkedGroup parked;
  StateGroup group;
  Bytes bytes;
};
// Of all stages, by the plan and its training programs.
std::vector<ParkedState> StateAway(const MemoryPlan& plan, const Schedule& training);

// Stages of which the plan has optimizer steps on the host, of all layers or of some.
std::set<StageId> StagesSteppedOnHost(const MemoryPlan& plan);

// The most that workers together carry from where the one plan has state to where another has it.
Bytes CarriedAtMost(const std::vector<ParkedState>& from, const std::vector<ParkedState>& to);

// Training state of one worker on its way from where one plan has it between steps to where another
// one does, in memory of the host meanwhile; also into and out of what optimizer steps there use.
// Groups of the two need not be the same: what is carried is known layer by layer.
//
// In the worker's memory there is never more than what both plans keep there between steps and one
// group beside it: so plans that fit lead to each other, whatever the capacity.
//
// Thread-safety: one thread, the worker's; between two steps. Errors: those of stages and engines,
// after which the state is lost.
class CarriedState {
 public:
  using StageComputes = std::map<StageId, StageCompute*>;

  // Takes everything that is away by the plan before, and all that is to be away by the next one.
  // `engine` may be null where nothing is. `on_host`: StagesSteppedOnHost of either plan, whose
  // optimizer state is freed then, wherever it was.
  absl::Status TakeOut(const StageComputes& stages, const std::vector<ParkedState>& from,
                       SwapEngine* engine, const std::vector<ParkedState>& to,
                       const std::set<StageId>& on_host = {});
  // Brings it to where a plan has it: the one that TakeOut was told of, or another one that has no
  // other groups away. Requires: steps that the plan has on the host have begun there
  // (HostSteps::Begin). Afterwards nothing is carried.
  absl::Status PutBack(const StageComputes& stages, const std::vector<ParkedState>& to,
                       SwapEngine* engine);
  Bytes bytes() const { return bytes_; }

 private:
  using LayerKey = std::tuple<StageId, GroupKind, int>;  // layer of the model

  absl::Status Keep(StageCompute& compute, const LayerKey& layer);
  absl::Status Restore(StageCompute& compute, const LayerKey& layer);

  std::map<LayerKey, std::vector<std::vector<std::byte>>> layers_;  // [tensor of the layer]
  Bytes bytes_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_CARRIED_STATE_H_
