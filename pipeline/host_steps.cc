#include "pipeline/host_steps.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/action.h"
#include "planner/moves_weights.h"
#include "planner/round_up.h"
#include "planner/status.h"
#include "planner/steps_on_host.h"

namespace siphon {
namespace {

// Whether the plan has the layer's parameters or gradients away at times.
bool MoveWeights(const StagePlan& plan, int layer) {
  return std::any_of(plan.groups.begin(), plan.groups.end(), [layer](const PlannedGroup& planned) {
    return MovesWeights(planned) && Contains(planned.group.layers, layer);
  });
}

Bytes Aligned(Bytes bytes) { return RoundUp(bytes, kCacheLine); }

// Hands out memory from its begin to its end.
class HostMemoryCutter {
 public:
  explicit HostMemoryCutter(absl::Span<std::byte> memory) : rest_(memory) {}
  absl::Span<std::byte> Take(Bytes bytes) {
    const absl::Span<std::byte> taken = rest_.subspan(0, static_cast<size_t>(bytes.value));
    rest_.remove_prefix(static_cast<size_t>(Aligned(bytes).value));
    return taken;
  }

 private:
  absl::Span<std::byte> rest_;
};

}  // namespace

HostSteps::HostSteps(const WorkerLayout& layout, const std::map<StageId, StageCompute*>& stages,
                     SwapEngine* engine)
    : layout_(layout), stages_(stages), engine_(engine) {
  for (const auto& [stage, compute] : stages_) {
    if (layout.memory.stages.empty()) continue;
    std::vector<Parameter> parameters = ParametersOf(stage);
    const bool any = std::any_of(parameters.begin(), parameters.end(),
                                 [](const Parameter& parameter) { return parameter.steps_here; });
    if (any) steps_[stage] = std::move(parameters);
  }
}

std::vector<HostSteps::Parameter> HostSteps::ParametersOf(StageId stage) const {
  const std::vector<StepTensor> tensors = stages_.at(stage)->StepTensors();
  std::vector<Parameter> parameters(tensors.size());
  const StagePlan& plan = layout_.memory.stages[static_cast<size_t>(stage.value)];
  for (size_t index = 0; index < tensors.size(); ++index) {
    parameters[index].layer = tensors[index].layer;
    parameters[index].steps_here = StepsOnHost(plan, tensors[index].layer);
    parameters[index].is_home = !MoveWeights(plan, tensors[index].layer);
  }
  const std::vector<PlannedGroup>& groups = plan.groups;
  for (size_t id = 0; id < groups.size(); ++id) {
    const auto& [group, choice] = groups[id];
    const bool value = group.kind == GroupKind::kParameters;
    if (choice.placement != Placement::kHostSwap) continue;
    if (!value && group.kind != GroupKind::kGradients) continue;
    size_t in_group = 0;
    for (size_t index = 0; index < tensors.size(); ++index) {
      if (!tensors[index].moves || !Contains(group.layers, tensors[index].layer)) continue;
      OnHost& on_host = value ? parameters[index].value : parameters[index].gradient;
      on_host.parked = InGroup{GroupId(static_cast<int>(id)), in_group++};
    }
  }
  return parameters;
}

bool HostSteps::Has(StageId stage, StageRange layers) const {
  const auto found = steps_.find(stage);
  if (found == steps_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const Parameter& parameter) {
    return parameter.steps_here && Contains(layers, parameter.layer);
  });
}

Bytes HostSteps::MemoryNeeded() const {
  Bytes needed;
  for (const auto& [stage, parameters] : steps_) {
    const std::vector<StepTensor> tensors = stages_.at(stage)->StepTensors();
    for (size_t index = 0; index < tensors.size(); ++index) {
      if (!parameters[index].steps_here) continue;
      needed += Aligned(tensors[index].state_bytes);
      if (!parameters[index].value.parked) needed += Aligned(tensors[index].parameter_bytes);
      if (!parameters[index].gradient.parked) needed += Aligned(tensors[index].gradient_bytes);
    }
  }
  return needed;
}

absl::Status HostSteps::Begin(absl::Span<std::byte> memory) {
  if (steps_.empty()) return absl::OkStatus();
  if (engine_ == nullptr || memory.size() < static_cast<size_t>(MemoryNeeded().value)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan has optimizer steps on the host, and this worker was given ",
                     memory.size(), " bytes there for the ", MemoryNeeded().value, " they take"));
  }
  HostMemoryCutter cutter(memory);
  for (auto& [stage, parameters] : steps_) {
    const std::vector<StepTensor> tensors = stages_.at(stage)->StepTensors();
    TensorSpans state;
    for (size_t index = 0; index < tensors.size(); ++index) {
      Parameter& parameter = parameters[index];
      absl::Span<std::byte>& own_state = state.emplace_back();
      if (!parameter.steps_here) continue;
      own_state = cutter.Take(tensors[index].state_bytes);
      if (!parameter.value.parked) {
        parameter.value.own = cutter.Take(tensors[index].parameter_bytes);
      }
      if (!parameter.gradient.parked) {
        parameter.gradient.own = cutter.Take(tensors[index].gradient_bytes);
      }
    }
    SIPHON_RETURN_IF_ERROR(stages_.at(stage)->KeepStateOnHost(state));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<std::byte>> HostSteps::MemoryOf(StageId stage, const OnHost& what) const {
  if (!what.parked.has_value()) return what.own;
  SIPHON_ASSIGN_OR_RETURN(const auto tensors,
                          engine_->OnHost({stage, what.parked->group, kNoMicrobatch}));
  if (what.parked->tensor < tensors.size()) return tensors[what.parked->tensor];
  return absl::FailedPreconditionError(
      absl::StrCat("stage ", stage.value, ", group ", what.parked->group.value,
                   " is not parked with the host, where the step is"));
}

absl::Status HostSteps::StartOut(StageId stage, StageRange layers,
                                 const std::vector<StepTensor>& tensors) {
  std::vector<Parameter>& parameters = steps_.at(stage);
  std::vector<HostCopy> out;
  for (size_t index = 0; index < tensors.size(); ++index) {
    const StepTensor& tensor = tensors[index];
    Parameter& parameter = parameters[index];
    if (!parameter.steps_here || tensor.stepped || parameter.has_left) continue;
    if (!Contains(layers, tensor.layer)) continue;
    // What is parked is what the parameter is, there or away.
    if (!parameter.value.parked && !parameter.fresh) {
      out.push_back({tensor.parameter, parameter.value.own});
    }
    parameter.fresh = parameter.has_left = true;
    if (tensor.gradient.empty()) continue;
    SIPHON_ASSIGN_OR_RETURN(const absl::Span<std::byte> there, MemoryOf(stage, parameter.gradient));
    out.push_back({tensor.gradient, there});
  }
  if (out.empty()) return absl::OkStatus();
  const CopyEvent event = engine_->host_copies().Start(CopyLane::kOut, std::move(out));
  leaving_[stage].push_back({layers, event});
  return absl::OkStatus();
}

absl::Status HostSteps::Step(StageId stage, StageRange layers, const UpdateSettings& settings,
                             StepRecorder& recorder) {
  StageCompute& compute = *stages_.at(stage);
  std::vector<Parameter>& parameters = steps_.at(stage);
  const std::vector<StepTensor> tensors = compute.StepTensors();
  SIPHON_RETURN_IF_ERROR(StartOut(stage, layers, tensors));
  for (size_t index = 0; index < tensors.size(); ++index) {
    const Parameter& other = parameters[index];
    if (!other.steps_here || !other.is_home || other.has_left || tensors[index].stepped) continue;
    SIPHON_RETURN_IF_ERROR(StartOut(stage, {other.layer, other.layer + 1}, tensors));
  }
  std::vector<HostStepMemory> memory(tensors.size());
  std::vector<HostCopy> in;
  for (size_t index = 0; index < tensors.size(); ++index) {
    const StepTensor& tensor = tensors[index];
    Parameter& parameter = parameters[index];
    if (!parameter.steps_here || tensor.stepped || !Contains(layers, tensor.layer)) continue;
    SIPHON_ASSIGN_OR_RETURN(memory[index].parameter, MemoryOf(stage, parameter.value));
    SIPHON_ASSIGN_OR_RETURN(memory[index].gradient, MemoryOf(stage, parameter.gradient));
    if (!tensor.parameter.empty()) in.push_back({memory[index].parameter, tensor.parameter});
    parameter.has_left = false;
  }
  recorder.BeginWait();
  SIPHON_RETURN_IF_ERROR(AwaitOut(stage, layers));
  SIPHON_RETURN_IF_ERROR(compute.StepOnHost(settings, layers, memory));
  SIPHON_RETURN_IF_ERROR(NoteChanges(stage, layers));
  arriving_[stage].push_back(engine_->host_copies().Start(CopyLane::kIn, std::move(in)));
  recorder.EndWait();
  return absl::OkStatus();
}

absl::Status HostSteps::AwaitOut(StageId stage, StageRange layers) {
  std::vector<Leaving>& leaving = leaving_[stage];
  for (const Leaving& one : leaving) {
    if (!Overlap(one.layers, layers)) continue;
    SIPHON_RETURN_IF_ERROR(engine_->host_copies().Wait(one.event));
  }
  std::erase_if(leaving, [&](const Leaving& one) { return Overlap(one.layers, layers); });
  return absl::OkStatus();
}

absl::Status HostSteps::NoteChanges(StageId stage, StageRange layers) {
  const std::vector<PlannedGroup>& groups =
      layout_.memory.stages[static_cast<size_t>(stage.value)].groups;
  for (size_t id = 0; id < groups.size(); ++id) {
    const auto& [group, choice] = groups[id];
    const bool parked =
        choice.placement == Placement::kHostSwap &&
        (group.kind == GroupKind::kParameters || group.kind == GroupKind::kGradients);
    if (!parked || layers.end <= group.layers.begin || group.layers.end <= layers.begin) continue;
    SIPHON_RETURN_IF_ERROR(
        engine_->ChangedOnHost({stage, GroupId(static_cast<int>(id)), kNoMicrobatch}));
  }
  return absl::OkStatus();
}

absl::Status HostSteps::Await(StageId stage, StepRecorder& recorder) {
  const auto found = arriving_.find(stage);
  if (found == arriving_.end()) return absl::OkStatus();
  const std::vector<CopyEvent> events = std::move(found->second);
  arriving_.erase(found);
  recorder.BeginWait();
  for (const CopyEvent event : events) {
    SIPHON_RETURN_IF_ERROR(engine_->host_copies().Wait(event));
  }
  recorder.EndWait();
  return absl::OkStatus();
}

absl::Status HostSteps::EndStep(StepRecorder& recorder) {
  while (!arriving_.empty()) SIPHON_RETURN_IF_ERROR(Await(arriving_.begin()->first, recorder));
  return absl::OkStatus();
}

}  // namespace siphon
