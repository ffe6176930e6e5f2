#ifndef SIPHON_PLANNER_DRAFTS_MAP_DRAFT_H_
#define SIPHON_PLANNER_DRAFTS_MAP_DRAFT_H_

#include <optional>

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/search_effort.h"
#include "planner/mapping/search_maps.h"

namespace siphon {

// A draft on the map on which what is too much for its workers reaches lenders fastest, and what is
// known of all maps by that score (MappingScore::kSwapTime).
struct LenderMap {
  DraftPlan draft;
  std::optional<FoundMap> found;  // none: not searched
};

// How much of what is too much for a worker has to find lenders: to the byte, or whole groups of
// activations, about as few bytes of them as are enough.
enum class ParkedAs { kBytes, kGroups };

// The draft of `simulated`, a simulation of it, on such a map (MapDevices): each worker lends what
// it has left at its fullest there. As it is where the problem has a mapping or replicas, or the
// topology no devices. Errors: as MapDevices.
absl::StatusOr<LenderMap> MapToLenders(const PlanningProblem& problem,
                                       const SimulatedDraft& simulated,
                                       ParkedAs parked = ParkedAs::kBytes);

// A draft on the best map that was found for it, and what is known of all maps.
struct MappedDraft {
  SimulatedDraft draft;
  std::optional<FoundMap> found;  // none: not searched
};

// For a plan's reader.
MapProof ProofOf(MappingScore score, const FoundMap& found);

// By how much its time is above the least of all maps, relatively, at most: 0 where it is proven.
// None where a map may have room for more, or nothing is known of times.
std::optional<double> GapOf(const MapProof& map);

// With how much more effort the map may be proven: none where it is, or MapsFor is all there is.
std::optional<MapEffort> MapsLeftToProve(const PlanningProblem& problem, const MapProof& map);

// Searches the map on which the draft's step is the shortest (MappingScore::kStepTime): what does
// not fit first, then the simulated step with lenders assigned anew on every map, then neighbours
// that are linked. Begins with the draft's own map.
//
// `found->bound` holds for every map on which the draft fits (MapStepBound).
//
// Not searched, and returned as it is: as for MapToLenders, and for MappingScore::kSwapTime.
// Never worse than `draft`. Errors: as DraftSimulator::Run, but for ResourceExhausted, which rules
// a map out.
absl::StatusOr<MappedDraft> MapByStepTime(DraftSimulator& simulator, SimulatedDraft draft,
                                          const MapEffort& effort);

// The draft's step is no shorter on any map on which MapByStepTime would look for it, `draft`'s own
// included. Errors: as LowerMemoryPlan.
absl::StatusOr<Nanos> LeastStepOfMaps(const PlanningProblem& problem, const SimulatedDraft& draft);

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_MAP_DRAFT_H_
