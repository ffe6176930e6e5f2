#ifndef SIPHON_PLANNER_SIMULATOR_OPTIMIZER_STEPS_H_
#define SIPHON_PLANNER_SIMULATOR_OPTIMIZER_STEPS_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/memory_plan.h"
#include "planner/simulator/graph/group_residence.h"
#include "planner/simulator/graph/step_writer.h"

namespace siphon {

// Optimizer steps: of a whole stage or of a group's layers, on the device or on the host.
class OptimizerSteps {
 public:
  // Both must outlive this.
  OptimizerSteps(StepWriter& writer, GroupResidence& groups);

  void BeginProgram();
  // The STEP that is being written. Errors: InvalidArgument when there is no path to the host.
  absl::Status Write();
  // Waits for parameters of the stage that are on their way in from a step on the host.
  void WaitForParameters(StageId stage);
  // The same for all stages of the worker.
  void EndProgram();

 private:
  static constexpr int kNone = StepWriter::kNone;

  // What one STEP takes of its stage.
  struct Part {
    std::vector<StageRange> layers;  // of the model
    Nanos time;
    Nanos host_time;
    Bytes gradients;
    Bytes parameters;
  };

  int FirstLayer(StageId stage) const;
  Part WholeStage(StageId stage) const;
  Part OfGroup(StageId stage, GroupId group) const;
  void Divide(StageId stage, const std::vector<int>& steps);
  bool IsOnHost(const Action& step) const;
  absl::StatusOr<int> AddUpGradients(Bytes gradients);
  absl::Status WriteOnHost(const Part& part);
  Bytes OnHost(GroupKind kind, const Part& part);

  StepWriter& writer_;
  GroupResidence& groups_;
  // [worker of a replica, place]: where the replicas meet, and their step on the host.
  std::map<std::pair<int, int>, int> meetings_;
  std::map<std::pair<int, int>, int> host_steps_;
  // Of the program that is being written:
  std::map<int, Part> parts_;  // [place]
  struct Arrival {
    int place;  // of the STEP
    int copy;
  };
  std::map<StageId, std::vector<Arrival>> arrivals_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_OPTIMIZER_STEPS_H_
