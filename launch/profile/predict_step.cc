#include "launch/profile/predict_step.h"

#include "planner/status.h"
#include "planner/validate_schedule.h"

namespace siphon {

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
                        .transport = {.latency = plan.link_latency,
                                      .rate = plan.link_rate,
                                      .copy_rate = plan.copy_rate,
                                      .room = plan.message_room},
                        .cores = plan.cores_together,
                        .capacity = CapacityOf(plan)};
  for (const PlanStage& stage : plan.stages) input.stages.push_back(stage.cost);
  for (const PlanWorker& worker : plan.workers) {
    MemoryByKind held;
    held[MemoryKind::kCommunication] = worker.communication;
    input.held.push_back(held);
  }
  return input;
}

absl::StatusOr<SimulatedStep> PredictStep(const PlanText& plan) {
  SIPHON_RETURN_IF_ERROR(ValidateSchedule(plan.training, SchedulePurpose::kTraining));
  return Simulate(SimulationInputOf(plan));
}

}  // namespace siphon
