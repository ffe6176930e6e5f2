#include "planner/strategies/one_device_problem.h"

#include "planner/lower_schedule.h"
#include "planner/status.h"

namespace siphon {
namespace {

LayerProfile ProfileOf(const WeightOffloadLayer& layer) {
  return {.name = layer.name,
          .forward = layer.forward,
          .input_backward = Nanos(layer.backward.value / 2),
          .weight_backward = layer.backward - Nanos(layer.backward.value / 2),
          .whole_backward = layer.backward,
          .parameters = layer.weight,
          .gradients = layer.weight,
          .boundary = layer.activation,
          .saved = {{"output", layer.activation}}};
}

// One forward and one backward, with the optimizer's step.
absl::StatusOr<Schedule> OneStep() {
  Schedule schedule{
      .microbatches = 1,
      .worker_of_stage = {WorkerId(0)},
      .programs = {{Action{.kind = ActionKind::kForward}, Action{.kind = ActionKind::kBackward}}}};
  SIPHON_ASSIGN_OR_RETURN(Schedule lowered, InsertCommunication(std::move(schedule)));
  return AppendOptimizerStep(std::move(lowered), {});
}

}  // namespace

absl::StatusOr<PlanningProblem> OneDeviceProblem(const WeightOffloadProblem& problem) {
  PlanningProblem one{.host_step = Nanos(1)};
  one.profile.source = "published";
  for (const WeightOffloadLayer& layer : problem.layers) {
    one.profile.layers.push_back(ProfileOf(layer));
  }
  one.partition.stages = {{0, static_cast<int>(problem.layers.size())}};
  SIPHON_ASSIGN_OR_RETURN(one.schedule, OneStep());
  one.topology = WithHost(UniformTopology(1, problem.out, Nanos(0)), 1,
                          {.to_host = problem.out, .from_host = problem.in});
  one.capacity = {problem.capacity};
  if (problem.input > Bytes(0)) {
    one.held.resize(1);
    one.held[0][MemoryKind::kActivations] = problem.input;
  }
  return one;
}

}  // namespace siphon
