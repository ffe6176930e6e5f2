#ifndef SIPHON_PLANNER_SEARCH_PATTERN_SEARCH_H_
#define SIPHON_PLANNER_SEARCH_PATTERN_SEARCH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// The best of drafts that are three patterns (stage_pattern.h): one for the first worker's stages,
// one for the last worker's, one for all others. Random changes of one or two numbers, of one
// pattern or of all three, by simulated annealing. Where all workers wait for each other, and
// lenders for room, only what all do at once is faster; searches layer by layer do not come to it.
//
// `kept` is a draft that keeps everything; its map stays. Deterministic; another seed often ends
// elsewhere. Errors: ResourceExhausted
// where no such draft can be simulated; as DraftSimulator::Run. At most so many simulations.
absl::StatusOr<SimulatedDraft> BestPatterns(DraftSimulator& simulator, const DraftPlan& kept,
                                            int simulations, uint64_t seed);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_PATTERN_SEARCH_H_
