#include "planner/strategies/map_draft.h"

#include <vector>

#include "planner/mapping/map_devices.h"
#include "planner/mapping/parking_demand.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Far more than a server of eight devices needs for a proof.
constexpr int64_t kMostParts = 50'000;

}  // namespace

absl::StatusOr<DraftPlan> MapToLenders(const PlanningProblem& problem,
                                       const SimulatedDraft& simulated) {
  DraftPlan draft = simulated.draft;
  const bool given = problem.mapping || problem.schedule.replicas > 1;
  if (given || DeviceCount(problem.topology) == 0 || problem.capacity.empty()) return draft;
  std::vector<Bytes> peaks;
  for (const MemoryByKind& peak : simulated.simulated.peak) peaks.push_back(Total(peak));
  const DeviceMapRequest request{
      .demand = PeakParkingDemand(peaks, problem.capacity),
      .neighbours = PipelineNeighbours(WorkerCount(problem.schedule), problem.schedule.replicas),
      .most_parts = kMostParts};
  SIPHON_ASSIGN_OR_RETURN(const FoundMap found, MapDevices(problem.topology, request));
  draft.mapping = found.mapping;
  return draft;
}

}  // namespace siphon
