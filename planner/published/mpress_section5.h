#ifndef SIPHON_PLANNER_PUBLISHED_MPRESS_SECTION5_H_
#define SIPHON_PLANNER_PUBLISHED_MPRESS_SECTION5_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/published/mpress_figures.h"
#include "planner/published/mpress_instance.h"
#include "planner/published/mpress_run.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {

// A rate at which every device would have to send to the memory behind PCIe so that the computation
// never waits for what a stage has too much of.
struct HidingRate {
  BytesPerSecond each_way;  // while as much comes back
  BytesPerSecond together;  // both directions
  friend bool operator==(const HidingRate&, const HidingRate&) = default;
};

// How fast devices compute: at the share of their peak that first principles assume, or, as a
// projection made from a data sheet may have it, at the peak.
enum class ProjectedSpeed { kAchieved, kPeak };

struct ProjectedStep {
  ProjectedSpeed speed = ProjectedSpeed::kAchieved;
  Nanos kept_step;  // as if everything fitted
  HidingRate hiding;
  std::vector<MpressRun> runs;
};

// MPress's projection for Grace-Hopper (section V): GPT-3 175B on eight superchips, one stage each.
struct MpressProjection {
  std::string machine;
  Bytes capacity;                    // of a superchip, less the driver's share
  BytesPerSecond pcie;               // of a device, as the topology has it
  std::vector<Bytes> demand;         // [stage] at its fullest with everything kept
  double recompute_share = 0;        // of the computation, if every layer is computed again
  std::vector<ProjectedStep> steps;  // both speeds
};

// A superchip's own memory and its processor's as one level of `grace`, and its drives, which stand
// for the memory behind PCIe, as the host; every device has its own way there, with an equal part
// of the drives' rates. Requires: the topology has devices.
Topology SuperchipTopology(Topology grace);

// GPT-3 175B: 96 layers, hidden 12288, 96 heads, sequence 2048 (Brown et al., arXiv:2005.14165,
// table 2.1), in fp16 with Adam. ASSUMED: microbatch 2 as MPress's other GPTs, 1F1B, 32
// microbatches.
// Of a stage with L microbatches alive whose demand is E too much, E / L of each microbatch leave
// and come back while the slowest stage computes one.
// Errors: as MakeShapedInstance and RunInstance.
absl::StatusOr<MpressProjection> RunMpressProjection(const Topology& grace,
                                                     const MpressTools& tools,
                                                     const std::vector<MemoryStrategy>& strategies,
                                                     MpressProgress say);

// Ours beside the paper's: it does not fit; more than 140 GB/s a GPU hide all swaps; D2D swap saves
// 25 % of resources or 13 % of time.
std::string MpressProjectionText(const MpressProjection& ours);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PUBLISHED_MPRESS_SECTION5_H_
