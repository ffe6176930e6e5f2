#include "planner/drafts/maps/way_graph.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/lowering/lower_memory_plan.h"
#include "planner/schedule_index.h"
#include "planner/simulator/engine/contract_graph.h"
#include "planner/simulator/graph/step_graph.h"
#include "planner/status.h"

namespace siphon {
namespace {

std::vector<PrivateWays::Message> MessagesOf(const Schedule& schedule) {
  std::vector<PrivateWays::Message> messages;
  for (int stage = 0; stage + 1 < StageCount(schedule); ++stage) {
    const WorkerId from = schedule.worker_of_stage[stage];
    const WorkerId to = schedule.worker_of_stage[stage + 1];
    if (from == to) continue;
    messages.emplace_back(from, to);
    messages.emplace_back(to, from);
  }
  std::sort(messages.begin(), messages.end());
  messages.erase(std::unique(messages.begin(), messages.end()), messages.end());
  return messages;
}

// Each group that goes to lenders goes to the worker's own. Of all ways to share bytes among
// lenders, some lender takes as long as all of them together would at their best, or longer; but
// CutStripes may cut two granules from its stripe, and then nothing is left of a small one.
void ParkAlone(const PlanningProblem& problem, const PrivateWays& ways, MemoryPlan& memory) {
  const Bytes cut = ways.AllFor(problem.granule * 2);
  for (size_t stage = 0; stage < memory.stages.size(); ++stage) {
    const int worker = problem.schedule.worker_of_stage[stage].value;
    for (auto& [group, choice] : memory.stages[stage].groups) {
      if (choice.placement != Placement::kPeerSwap) continue;
      const Bytes free = std::min(cut, group.bytes);
      choice.stripes = {{ways.FreeLender(), free}};
      if (free < group.bytes) choice.stripes.push_back({ways.LenderOf(worker), group.bytes - free});
    }
  }
}

}  // namespace

absl::StatusOr<WayGraph> MakeWayGraph(const PlanningProblem& problem, DraftPlan draft) {
  const int workers = WorkerCount(problem.schedule);
  PrivateWays ways(problem.topology, workers, MessagesOf(problem.schedule));
  for (int worker = 0; worker < workers; ++worker) {
    draft.lenders[worker] = {{ways.LenderOf(worker), 1}};
  }
  draft.mapping = IdentityMapping(workers);
  MemoryPlan memory = PlanOf(problem, draft);
  ParkAlone(problem, ways, memory);
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule,
                          LowerMemoryPlan(problem.schedule, memory, LoweringOf(draft)));
  SimulationInput input =
      SimulationOf(problem, draft.mapping, std::move(memory), std::move(schedule));
  input.cores = {};
  input.topology = ways.Numbered();
  SIPHON_ASSIGN_OR_RETURN(
      const ScheduleIndex index,
      ScheduleIndex::Build(input.schedule, ScheduleIndex::Actions::kWithoutGroups));
  SIPHON_ASSIGN_OR_RETURN(const StepGraph step, BuildStepGraph(input, index));
  return WayGraph{.ways = std::move(ways), .graph = ContractGraph(step.graph)};
}

}  // namespace siphon
