#include "planner/baselines/baseline_problem.h"

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {

ProfileTotals TotalsOf(const ModelProfile& profile) {
  ProfileTotals totals;
  for (const LayerProfile& layer : profile.layers) {
    const Bytes saved = SavedBytes(layer);
    totals.forward += layer.forward;
    totals.backward += WholeBackward(layer);
    totals.optimizer += layer.optimizer;
    totals.parameters += layer.parameters;
    totals.gradients += layer.gradients;
    totals.optimizer_state += layer.optimizer_state;
    totals.saved += saved;
    totals.boundaries += layer.boundary;
    totals.largest_parameters = std::max(totals.largest_parameters, layer.parameters);
    totals.largest_gradients = std::max(totals.largest_gradients, layer.gradients);
    totals.largest_saved = std::max(totals.largest_saved, saved);
    totals.largest_workspace =
        std::max({totals.largest_workspace, layer.forward_workspace, layer.backward_workspace});
  }
  return totals;
}

absl::Status CheckBaselineProblem(const BaselineProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckTopology(problem.topology));
  if (DeviceCount(problem.topology) == 0) {
    return absl::InvalidArgumentError("a baseline needs a topology with devices");
  }
  if (const int servers = ServerCount(problem.topology); servers > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a baseline is modelled on one server, and there are ", servers));
  }
  if (problem.profile.layers.empty() || problem.microbatches < 1 || problem.capacity <= Bytes(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a baseline needs layers, microbatches and a capacity; there are ",
                     problem.profile.layers.size(), " layers, ", problem.microbatches,
                     " microbatches and ", FormatBytes(problem.capacity)));
  }
  return absl::OkStatus();
}

absl::Status CheckRoom(const BaselineProblem& problem, const BaselineStep& step) {
  if (step.device > problem.capacity) {
    const auto [needed, has] = FormatApart(step.device, problem.capacity);
    return absl::ResourceExhaustedError(
        absl::StrCat("a device needs ", needed, " at its fullest, its capacity is ", has));
  }
  const Bytes host = problem.topology.host_memory;
  if (host > Bytes(0) && step.host > host) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the host needs ", FormatBytes(step.host), ", it has ", FormatBytes(host)));
  }
  Bytes drives;
  for (const NvmeDrive& drive : problem.topology.drives) drives += drive.capacity;
  if (step.drives > drives) {
    return absl::ResourceExhaustedError(absl::StrCat("the drives need ", FormatBytes(step.drives),
                                                     ", they have ", FormatBytes(drives)));
  }
  return absl::OkStatus();
}

}  // namespace siphon
