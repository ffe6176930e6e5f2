#ifndef SIPHON_PLANNER_BASELINES_ZERO_STEP_H_
#define SIPHON_PLANNER_BASELINES_ZERO_STEP_H_

#include "absl/status/statusor.h"
#include "planner/baselines/baseline_problem.h"

namespace siphon {

// Data parallelism whose states are partitioned over the N devices (ZeRO: Rajbhandari et al., SC
// 2020), with gradients and optimizer beyond them. For each microbatch:
//   forward    layer by layer: the other devices' (N-1)/N of the layer's weights are gathered while
//              the layer before computes (room for two layers)
//   backward   the same from the last layer, weights gathered again; before it the layer's forward
//              where activations are recomputed; then its gradients are summed over the devices,
//              (N-1)/N of them sent by each, and each device's 1/N goes to the host while earlier
//              layers compute (room for two layers)
// and once a step, after the last gradient: the host's Adam, layer by layer.
//
// The host adds the gradients of microbatches up without taking time; collectives run at
// ServerRates::collective, beside copies to the host. Activations are all kept if that fits, or all
// recomputed but for each layer's input. Steps do not overlap.

// ZeRO-Offload (Ren et al., USENIX ATC 2021, section 4) with weights partitioned too, without which
// no model of MPress's Figure 8 beyond 16B would fit into 32 GB: gradients, master weights and
// moments on the host; updated weights go back to the devices layer by layer, while the host steps
// the next layer. Its delayed update, which changes what is learnt, is left out.
absl::StatusOr<BaselineStep> ZeroOffloadStep(const BaselineProblem& problem);

// ZeRO-Infinity (Rajbhandari et al., SC 2021, section 5): weights are in host memory, of which each
// device brings its 1/N over its own uplink before a layer is gathered. Optimizer state for which
// host memory has no room is on NVMe drives, and is read, stepped and written layer by layer, all
// three at once.
absl::StatusOr<BaselineStep> ZeroInfinityStep(const BaselineProblem& problem);

// The same with all optimizer state on drives, whatever room the host has.
absl::StatusOr<BaselineStep> ZeroInfinityNvmeStep(const BaselineProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BASELINES_ZERO_STEP_H_
