#ifndef SIPHON_PLANNER_PUBLISHED_MPRESS_INSTANCE_H_
#define SIPHON_PLANNER_PUBLISHED_MPRESS_INSTANCE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/drafts/planning_problem.h"
#include "planner/memory/mpress_tables.h"
#include "planner/schedule.h"

namespace siphon {

// What other folders do for an instance: BuildSchedule of pipeline/schedules, and a partitioner.
struct MpressTools {
  std::function<absl::StatusOr<Schedule>(absl::string_view name, const ScheduleShape& shape)>
      build_schedule;
  std::function<absl::StatusOr<StagePartition>(const ModelSpec& model, int stages)> partition;
};

// A row of Table II as a planning problem.
struct MpressInstance {
  MpressRow row;
  ModelOptions shape;
  PlanningProblem problem;
  int64_t samples = 0;  // of a step
  double flops = 0;     // of a step, the backward counted as twice the forward (section IV.A)
};

// Microbatches of a step. The paper gives none: ASSUMED four to a stage, so that filling and
// draining the pipeline counts little. A PipeDream "step" is so many of its minibatches.
inline constexpr int kMpressMicrobatches = 4 * kMpressStages;

// What a device's driver and libraries take of its memory. ASSUMED: about what a CUDA context with
// cuDNN, cuBLAS and NCCL holds.
inline constexpr Bytes kMpressReserve{1'000'000'000};

// The row's model on `topology`, whose device_kind names a row of devices.def:
// - shape: FittedShape, or ClosestShape where the paper gives no depth;
// - bytes: 16 a parameter and the published activation formula, as in Table II's readings; Adam;
// - times: ProfileFromFirstPrinciples, nothing tuned for a row;
// - cut: tools.partition (the paper balances computing time; Table II is met by CutAtFloor);
// - schedule: DAPPLE's 1F1B with one optimizer step at the end, PipeDream with an update a
//   minibatch; communication included;
// - a step of the optimizer on the host takes HostAdamTime (planner/performance/host_adam.h);
// - score of device maps: MPress's (section III.C).
// Errors: NotFound for an unknown device kind; InvalidArgument for a topology of fewer than eight
// devices, or devices whose memory is not known; those of `tools`.
absl::StatusOr<MpressInstance> MakeMpressInstance(const MpressRow& row, const Topology& topology,
                                                  const MpressTools& tools);

// The same for a model whose shape is known. Errors: likewise.
absl::StatusOr<MpressInstance> MakeShapedInstance(const MpressRow& row, const ModelOptions& shape,
                                                  const Topology& topology,
                                                  const MpressTools& tools);

// Errors: NotFound, known names listed.
absl::StatusOr<MpressRow> FindMpressRow(absl::string_view name);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PUBLISHED_MPRESS_INSTANCE_H_
