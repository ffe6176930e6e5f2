#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/drafts/fit_moves.h"
#include "planner/drafts/maps/map_draft.h"
#include "planner/search/swap_draft.h"
#include "planner/status.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"

namespace siphon {
namespace {

absl::Status NoRoom(DraftSimulator& simulator) {
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft kept, DraftKeep(simulator));
  const auto most = std::max_element(kept.excess.begin(), kept.excess.end());
  const auto worker = static_cast<int>(most - kept.excess.begin());
  const Bytes capacity = simulator.CapacityOf(worker);
  const auto [needed, has] = FormatApart(capacity + *most, capacity);
  return absl::ResourceExhaustedError(absl::StrCat(
      "worker ", worker, " needs ", needed, " at its fullest under d2d_swap, its capacity is ", has,
      ", and lenders that it reaches have no room for the rest"));
}

// Weights, gradients and optimizer state stay on the devices, all of them at any time: whether
// these alone would fit into all devices together. `kept` keeps everything.
bool HaveRoomTogether(const PlanningProblem& problem, const SimulatedDraft& kept) {
  const Topology& topology = problem.topology;
  Bytes room;
  for (const Bytes capacity : problem.capacity) {
    if (capacity == Bytes(0)) return true;
    room += capacity;
  }
  std::vector<Bytes> memory;
  for (const TopologyDevice& device : topology.devices) memory.push_back(device.memory);
  std::sort(memory.rbegin(), memory.rend());
  // Those without a worker, which may be the largest.
  for (size_t idle = 0; idle + problem.capacity.size() < memory.size(); ++idle) {
    if (memory.back() == Bytes(0)) return true;  // not known
    room += memory[idle];
  }
  Bytes standing;
  for (const MemoryByKind& peak : kept.simulated.peak) {
    standing +=
        peak[MemoryKind::kParameters] + peak[MemoryKind::kGradients] + peak[MemoryKind::kOptimizer];
  }
  return standing <= room;
}

}  // namespace

absl::StatusOr<SimulatedDraft> DraftPeerSwap(DraftSimulator& simulator) {
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft kept, DraftKeep(simulator));
  if (Fits(kept)) return kept;
  SIPHON_ASSIGN_OR_RETURN(const LenderMap mapped, MapToLenders(simulator.problem(), kept));
  return FewestSwapped(simulator, SwapToOnePlace(simulator, mapped.draft, Placement::kPeerSwap),
                       Placement::kPeerSwap);
}

absl::StatusOr<PlannedStep> PlanPeerSwap(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  DraftSimulator simulator(problem);
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft kept, DraftKeep(simulator));
  if (Fits(kept)) return PlanOnBestMap(problem, DraftKeep, "d2d_swap");
  if (!HaveRoomTogether(problem, kept)) return NoRoom(simulator);
  SIPHON_ASSIGN_OR_RETURN(LenderMap mapped, MapToLenders(problem, kept));
  const auto swapped = [&](const DeviceMapping& mapping) {
    DraftPlan start = KeepingDraft(problem);
    start.mapping = mapping;
    return FewestSwapped(
        simulator,
        Better(SwapToOnePlace(simulator, start, Placement::kPeerSwap),
               SwapToOnePlace(simulator, start, Placement::kPeerSwap, StateBetweenSteps::kHome)),
        Placement::kPeerSwap);
  };
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft draft, swapped(mapped.draft.mapping));
  if (!Fits(draft)) {
    SIPHON_ASSIGN_OR_RETURN(mapped, MapToLenders(problem, kept, ParkedAs::kGroups));
    SIPHON_ASSIGN_OR_RETURN(draft, swapped(mapped.draft.mapping));
  }
  if (!Fits(draft) && simulator.MayLendOverTime()) {
    simulator.LendBy(LendingRule::kOverTime);
    SIPHON_ASSIGN_OR_RETURN(draft, swapped(mapped.draft.mapping));
  }
  if (!Fits(draft)) return NoRoom(simulator);
  SIPHON_ASSIGN_OR_RETURN(PlannedStep planned,
                          PlanOnBestMap(simulator, std::move(draft), swapped, "d2d_swap"));
  if (!planned.map && mapped.found) planned.map = ProofOf(problem.score, *mapped.found);
  return planned;
}

}  // namespace siphon
