#include "planner/simulator/graph/optimizer_steps.h"

#include <algorithm>
#include <cstddef>

#include "planner/status.h"
#include "planner/steps_on_host.h"

namespace siphon {
namespace {

// The layers of `range` that are in none of `others`.
std::vector<StageRange> Without(const StageRange& range, const std::vector<StageRange>& others) {
  std::vector<StageRange> rest;
  for (int layer = range.begin; layer < range.end; ++layer) {
    const bool taken = std::any_of(others.begin(), others.end(), [layer](const StageRange& other) {
      return Contains(other, layer);
    });
    if (taken) continue;
    if (rest.empty() || rest.back().end < layer) rest.push_back({layer, layer});
    rest.back().end = layer + 1;
  }
  return rest;
}

}  // namespace

OptimizerSteps::OptimizerSteps(StepWriter& writer, GroupResidence& groups)
    : writer_(writer), groups_(groups) {}

void OptimizerSteps::BeginProgram() {
  parts_.clear();
  std::map<StageId, std::vector<int>> steps;  // places
  const std::vector<Action>& program = writer_.input().schedule.programs[writer_.worker()];
  for (int place = 0; place < static_cast<int>(program.size()); ++place) {
    if (program[place].kind == ActionKind::kStep) steps[program[place].stage].push_back(place);
  }
  for (const auto& [stage, places] : steps) Divide(stage, places);
}

// Groups take their parts, the plain STEP takes the rest; where there is none, the last one does.
void OptimizerSteps::Divide(StageId stage, const std::vector<int>& steps) {
  const std::vector<Action>& program = writer_.input().schedule.programs[writer_.worker()];
  int of_the_rest = steps.back();
  std::vector<StageRange> stepped;
  Part rest = WholeStage(stage);
  for (const int place : steps) {
    if (program[place].group == kWholeStage) of_the_rest = place;
  }
  for (const int place : steps) {
    if (program[place].group == kWholeStage) continue;
    Part& part = parts_[place] = OfGroup(stage, program[place].group);
    stepped.push_back(part.layers.front());
    part.time = std::min(part.time, rest.time);
    rest.time -= part.time;
    rest.host_time -= part.host_time;
    rest.gradients -= part.gradients;
    rest.parameters -= part.parameters;
  }
  Part& part = parts_[of_the_rest];
  if (part.layers.empty()) part.layers = Without(rest.layers.front(), stepped);
  part.time += rest.time;
  part.host_time += rest.host_time;
  part.gradients += rest.gradients;
  part.parameters += rest.parameters;
}

int OptimizerSteps::FirstLayer(StageId stage) const {
  const SimulationInput& input = writer_.input();
  int layers = 0;
  if (input.layers.empty()) return layers;
  for (int before = 0; before < stage.value; ++before) {
    layers += static_cast<int>(input.layers[before].size());
  }
  return layers;
}

OptimizerSteps::Part OptimizerSteps::WholeStage(StageId stage) const {
  const SimulationInput& input = writer_.input();
  const StageCost& cost = writer_.CostOf(stage);
  const int first = FirstLayer(stage);
  const int layers = input.layers.empty() ? 1 : static_cast<int>(input.layers[stage.value].size());
  return {.layers = {{first, first + layers}},
          .time = cost.step,
          .host_time = input.host_step.empty() ? Nanos(0) : input.host_step[stage.value],
          .gradients = cost.gradients + cost.shared_gradients,
          .parameters = cost.parameters + cost.shared_parameters};
}

// Optimizer state, parameters and gradients are all so many bytes an element.
OptimizerSteps::Part OptimizerSteps::OfGroup(StageId stage, GroupId id) const {
  const SimulationInput& input = writer_.input();
  const TensorGroup& group = input.memory.stages[stage.value].groups[id.value].group;
  const Part whole = WholeStage(stage);
  Part part{.layers = {group.layers}};
  const int first = FirstLayer(stage);
  for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
    part.time += input.layers[stage.value][layer - first].optimizer;
  }
  const int64_t state = writer_.CostOf(stage).optimizer_state.value;
  if (state == 0) return part;
  const int64_t own = group.bytes.value;
  part.host_time = Nanos(PartOf(Bytes(whole.host_time.value), own, state).value);
  part.gradients = PartOf(whole.gradients, own, state);
  part.parameters = PartOf(whole.parameters, own, state);
  return part;
}

bool OptimizerSteps::IsOnHost(const Action& step) const {
  if (writer_.input().memory.stages.empty()) return false;
  const StagePlan& plan = writer_.input().memory.stages[step.stage.value];
  if (step.group == kWholeStage) return plan.update == UpdatePlace::kHost;
  return StepsOnHost(plan, plan.groups[step.group.value]);
}

absl::Status OptimizerSteps::Write() {
  const Part& part = parts_.at(writer_.place());
  for (const StageRange& layers : part.layers) groups_.PrepareStep(layers);
  if (IsOnHost(writer_.action())) return WriteOnHost(part);
  int sum = kNone;
  if (writer_.input().schedule.replicas > 1) {
    SIPHON_ASSIGN_OR_RETURN(sum, AddUpGradients(part.gradients));
  }
  const int step = writer_.AddOnLane(TaskRole::kCompute, part.time);
  if (sum != kNone) writer_.Wait(step, sum);
  return absl::OkStatus();
}

// The replica's gradients go to the host, the sum over all replicas comes back: with that copy.
absl::StatusOr<int> OptimizerSteps::AddUpGradients(Bytes gradients) {
  const auto [found, is_first] = meetings_.try_emplace({writer_.worker(), writer_.place()});
  if (is_first) found->second = writer_.AddMeeting(Nanos(0));
  const int meeting = found->second;
  SIPHON_ASSIGN_OR_RETURN(const Route out,
                          writer_.resources().HostCopy(writer_.account(), CopyDirection::kOut));
  writer_.AddDependency(meeting, writer_.AddCopy(TaskRole::kExchange, out, gradients));
  SIPHON_ASSIGN_OR_RETURN(const Route in,
                          writer_.resources().HostCopy(writer_.account(), CopyDirection::kIn));
  const int sum = writer_.AddCopy(TaskRole::kExchange, in, gradients);
  writer_.Wait(sum, meeting);
  return sum;
}

Bytes OptimizerSteps::OnHost(GroupKind kind, const Part& part) {
  Bytes bytes;
  for (const StageRange& layers : part.layers) bytes += groups_.OnHost(kind, layers);
  return bytes;
}

// What is there already is not copied. Replicas' gradients are added up on the way, in no time of
// its own, and all of them take the same new parameters.
absl::Status OptimizerSteps::WriteOnHost(const Part& part) {
  SIPHON_ASSIGN_OR_RETURN(const Route out,
                          writer_.resources().HostCopy(writer_.account(), CopyDirection::kOut));
  SIPHON_ASSIGN_OR_RETURN(const Route in,
                          writer_.resources().ParametersFromHost(writer_.account()));
  const Bytes gradients = std::max(part.gradients - OnHost(GroupKind::kGradients, part), Bytes(0));
  const Bytes parameters =
      std::max(part.parameters - OnHost(GroupKind::kParameters, part), Bytes(0));
  const int host = writer_.host();
  const int leaving = writer_.AddCopy(TaskRole::kSwap, out, gradients);
  const auto [found, is_first] = host_steps_.try_emplace({writer_.worker(), writer_.place()});
  if (is_first) found->second = writer_.AddHostStep(part.host_time);
  const int step = found->second;
  writer_.AddDependency(step, leaving);
  writer_.ChangeAt(host, leaving, TaskMoment::kBegin, MemoryKind::kGradients, gradients);
  writer_.ChangeAt(host, step, TaskMoment::kEnd, MemoryKind::kGradients, gradients * -1);
  const int coming = writer_.AddCopy(TaskRole::kSwap, in, parameters);
  writer_.AddDependency(coming, step);
  arrivals_[writer_.action().stage].push_back({writer_.place(), coming});
  return absl::OkStatus();
}

void OptimizerSteps::WaitForParameters(StageId stage) {
  const auto found = arrivals_.find(stage);
  if (found == arrivals_.end()) return;
  const int end = writer_.AddOnLane(TaskRole::kMarker, Nanos(0));
  for (const Arrival& arrival : found->second) writer_.Wait(end, arrival.copy);
  arrivals_.erase(found);
}

void OptimizerSteps::EndProgram() {
  while (!arrivals_.empty()) {
    const auto& [stage, arrivals] = *arrivals_.begin();
    writer_.BeginAction(arrivals.back().place);
    WaitForParameters(stage);
  }
}

}  // namespace siphon
