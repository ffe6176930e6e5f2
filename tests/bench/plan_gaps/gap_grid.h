#ifndef SIPHON_TESTS_BENCH_PLAN_GAPS_GAP_GRID_H_
#define SIPHON_TESTS_BENCH_PLAN_GAPS_GAP_GRID_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

// A planning problem, and where in the grid it is: "gpt dgx1 1f1b 25%".
struct GapInstance {
  std::string name;
  PlanningProblem problem;
};

// Models (gpt, bert, mlp with times from first principles, and one whose layers all differ) x
// servers (DGX-1, DGX A100, four GPUs on PCIe only, six joined by unequal links) x schedules x
// capacities. A capacity of x % lies so far between what is left when all activations are computed
// again and all optimizer state is on the host (0 %) and what the fullest worker needs to keep
// everything (100 %); the same for all workers.
//
// Deterministic. `instances` of the grid, drawn by `seed`; all of it when there are no more.
// Errors: of the folders that make it, which would be a fault here.
absl::StatusOr<std::vector<GapInstance>> GapGrid(int instances, uint32_t seed);
int GapGridSize();

// Two or three workers with two to four layers each, whose layers, links and capacities are drawn
// by the seed: small enough for an exact optimum.
absl::StatusOr<GapInstance> SmallGapInstance(uint32_t seed);

// Two or three workers, two to four microbatches, one or two layers a stage, all unlike: so small
// that all drafts of it can be simulated (BestOfEveryDraft).
absl::StatusOr<GapInstance> TinyGapInstance(uint32_t seed);

}  // namespace siphon

#endif  // SIPHON_TESTS_BENCH_PLAN_GAPS_GAP_GRID_H_
