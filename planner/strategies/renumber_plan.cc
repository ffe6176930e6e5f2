#include "planner/strategies/renumber_plan.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/canonical_devices.h"
#include "planner/simulator/simulate.h"
#include "planner/status.h"

namespace siphon {
namespace {

// "device 3" of a message, as the user calls it.
std::string WithUsersNumbers(absl::string_view message, absl::Span<const DeviceId> order) {
  constexpr absl::string_view kDevice = "device ";
  std::string text;
  while (true) {
    const size_t found = message.find(kDevice);
    if (found == absl::string_view::npos) return absl::StrCat(text, message);
    absl::StrAppend(&text, message.substr(0, found + kDevice.size()));
    message.remove_prefix(found + kDevice.size());
    const auto end = std::find_if_not(message.begin(), message.end(), absl::ascii_isdigit);
    const auto digits = static_cast<size_t>(end - message.begin());
    size_t number = 0;
    if (!absl::SimpleAtoi(message.substr(0, digits), &number) || number >= order.size()) continue;
    absl::StrAppend(&text, order[number].value);
    message.remove_prefix(digits);
  }
}

// A plan for the problem in that order as one for the user's, simulated there.
absl::StatusOr<PlannedStep> WithUsersNumbers(const PlanningProblem& problem,
                                             absl::Span<const DeviceId> order,
                                             PlannedStep planned) {
  for (DeviceId& device : planned.mapping.device_of_worker) device = order[device.value];
  for (StagePlan& stage : planned.memory.stages) {
    for (PlannedGroup& group : stage.groups) {
      for (Stripe& stripe : group.choice.stripes) stripe.lender = order[stripe.lender.value];
    }
  }
  SIPHON_ASSIGN_OR_RETURN(
      planned.simulated,
      Simulate(SimulationOf(problem, planned.mapping, planned.memory, planned.schedule)));
  return planned;
}

}  // namespace

PlanningProblem RenumberedProblem(const PlanningProblem& problem,
                                  absl::Span<const DeviceId> order) {
  if (std::is_sorted(order.begin(), order.end())) return problem;  // also without devices
  PlanningProblem renumbered = problem;
  renumbered.topology = Renumbered(problem.topology, order);
  if (!renumbered.mapping) return renumbered;
  for (DeviceId& device : renumbered.mapping->device_of_worker) {
    const auto place = std::find(order.begin(), order.end(), device) - order.begin();
    device = DeviceId(static_cast<int>(place));
  }
  return renumbered;
}

absl::StatusOr<PlannedStep> PlanInCanonicalOrder(
    const PlanningProblem& problem,
    absl::FunctionRef<absl::StatusOr<PlannedStep>(const PlanningProblem&)> plan) {
  SIPHON_RETURN_IF_ERROR(CheckTopology(problem.topology));
  const std::vector<DeviceId> order = CanonicalOrder(problem.topology);
  if (std::is_sorted(order.begin(), order.end())) return plan(problem);
  absl::StatusOr<PlannedStep> planned = plan(RenumberedProblem(problem, order));
  if (!planned.ok()) {
    return absl::Status(planned.status().code(),
                        WithUsersNumbers(planned.status().message(), order));
  }
  return WithUsersNumbers(problem, order, *std::move(planned));
}

}  // namespace siphon
