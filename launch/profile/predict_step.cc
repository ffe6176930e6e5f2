#include "launch/profile/predict_step.h"

#include <algorithm>
#include <cstddef>

#include "planner/memory/memory_kind.h"
#include "planner/status.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

void AddStages(const PlanText& plan, SimulationInput& input) {
  const bool by_layer = std::any_of(plan.stages.begin(), plan.stages.end(),
                                    [](const auto& stage) { return !stage.layer_costs.empty(); });
  const bool on_host = std::any_of(plan.stages.begin(), plan.stages.end(),
                                   [](const auto& stage) { return stage.host_step > Nanos(0); });
  for (const PlanStage& stage : plan.stages) {
    input.stages.push_back(stage.cost);
    if (by_layer) input.layers.push_back(stage.layer_costs);
    if (on_host) input.host_step.push_back(stage.host_step);
  }
}

void TakeStages(const SimulationInput& input, PlanText& plan) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    PlanStage& into = plan.stages[stage];
    into.cost = input.stages[stage];
    into.layer_costs = input.layers.empty() ? std::vector<LayerCost>() : input.layers[stage];
    into.host_step = input.host_step.empty() ? Nanos(0) : input.host_step[stage];
  }
  plan.memory = input.memory;
  const auto keeps = [](const StagePlan& stage) { return stage == StagePlan(); };
  if (std::all_of(plan.memory.stages.begin(), plan.memory.stages.end(), keeps)) {
    plan.memory.stages.clear();
  }
}

void TakeWorkers(const SimulationInput& input, PlanText& plan) {
  for (size_t worker = 0; worker < plan.workers.size(); ++worker) {
    PlanWorker& into = plan.workers[worker];
    into.capacity = input.capacity.empty() ? Bytes(0) : input.capacity[worker];
    const MemoryByKind held = input.held.empty() ? MemoryByKind() : input.held[worker];
    into.communication = held[MemoryKind::kCommunication];
    into.slack = Total(held) - into.communication;
  }
  plan.mapping.device_of_worker = input.device_of_worker;
}

}  // namespace

std::vector<Bytes> CapacityOf(const PlanText& plan) {
  std::vector<Bytes> capacity;
  bool any = false;
  for (const PlanWorker& worker : plan.workers) {
    capacity.push_back(worker.capacity);
    any = any || worker.capacity.value > 0;
  }
  return any ? capacity : std::vector<Bytes>();
}

SimulationInput SimulationInputOf(const PlanText& plan) {
  SimulationInput input{.schedule = plan.training,
                        .topology = plan.topology,
                        .device_of_worker = plan.mapping.device_of_worker,
                        .transport = {.latency = plan.link_latency,
                                      .rate = plan.link_rate,
                                      .host_rate = plan.host_rate,
                                      .copy_rate = plan.copy_rate,
                                      .swap_rate = plan.swap_rate,
                                      .room = plan.message_room,
                                      .sent = plan.sent},
                        .cores = plan.cores_together,
                        .memory = plan.memory,
                        .capacity = CapacityOf(plan),
                        .frees_at_waits = plan.frees_at_waits};
  AddStages(plan, input);
  for (const PlanWorker& worker : plan.workers) {
    MemoryByKind held;
    held[MemoryKind::kCommunication] = worker.communication;
    held[MemoryKind::kSlack] = worker.slack;
    input.held.push_back(held);
  }
  return input;
}

PlanText WithSimulationInput(PlanText plan, const SimulationInput& input) {
  SIPHON_CHECK(plan.stages.size() == input.stages.size() &&
                   plan.workers.size() == input.schedule.programs.size(),
               "the simulation has the plan's stages and workers");
  plan.training = input.schedule;
  plan.topology = input.topology;
  plan.topology.name = NameForPlan(input.topology.name);
  plan.topology.device_kind = NameForPlan(input.topology.device_kind);
  plan.link_latency = input.transport.latency;
  plan.link_rate = input.transport.rate;
  plan.host_rate = input.transport.host_rate;
  plan.copy_rate = input.transport.copy_rate;
  plan.swap_rate = input.transport.swap_rate;
  plan.message_room = input.transport.room;
  plan.sent = input.transport.sent;
  plan.frees_at_waits = input.frees_at_waits;
  plan.cores_together = input.cores;
  TakeStages(input, plan);
  TakeWorkers(input, plan);
  return plan;
}

absl::StatusOr<SimulatedStep> PredictStep(const PlanText& plan) {
  SIPHON_RETURN_IF_ERROR(ValidateSchedule(plan.training, SchedulePurpose::kTraining, plan.memory));
  return Simulate(SimulationInputOf(plan));
}

PlanPrediction PredictionOf(const SimulatedStep& step, Nanos lower_bound) {
  return {.step_time = step.step_time, .lower_bound = lower_bound, .peak = TotalPeaks(step)};
}

}  // namespace siphon
