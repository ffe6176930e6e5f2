#include "launch/profile/plan_in_file.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/config/read_text_file.h"
#include "launch/profile/job_problem.h"
#include "planner/lowering/make_groups.h"
#include "planner/plan_file/plan_keys.h"
#include "planner/status.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/training_plan.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

constexpr char kPlanKey[] = "memory.plan";
constexpr char kPlanAgain[] = "; plan this job again (siphon plan --output)";

std::string NumberedSection(absl::string_view name, size_t number) {
  return absl::StrCat(name, " ", number);
}

// One thing after the other that plan and job must have alike.
class PlanCheck {
 public:
  explicit PlanCheck(const PlanInFile& file) : file_(file) {}

  template <typename Value>
  void Same(absl::string_view section, absl::string_view key, const Value& in_plan,
            const Value& in_job) {
    if (in_plan == in_job) return;
    Differs(section, key, absl::StrCat(key, " is ", in_plan, ", the job's is ", in_job));
  }
  void Differs(absl::string_view section, absl::string_view key, absl::string_view problem,
               absl::string_view advice = kPlanAgain) {
    status_.Update(absl::InvalidArgumentError(
        absl::StrCat(PlaceInPlan(file_, section, key), ": ", problem, advice)));
  }
  absl::Status status() const { return status_; }

 private:
  const PlanInFile& file_;
  absl::Status status_;  // of the first that differs
};

std::string LayersText(const StageRange& layers) {
  return absl::StrCat(layers.begin, " to ", layers.end - 1);
}

// A strategy that plans are made by, where the file names one.
void CheckStrategy(const PlanText& plan, PlanCheck& check) {
  constexpr absl::string_view kOfSchedulesToo = "harmony";  // it makes a job's schedule as well
  if (plan.strategy.empty() || plan.strategy == kOfSchedulesToo) return;
  const absl::Status known = FindMemoryStrategy(plan.strategy).status();
  if (known.ok()) return;
  check.Differs(kJobSection, kStrategyKey, absl::StrCat(known.message(), ", ", kOfSchedulesToo),
                "");
}

void CheckStages(const PlanText& plan, const PlannedJob& planned, PlanCheck& check) {
  const TrainingPlan& job = planned.plan;
  const size_t stages = job.partition.stages.size();
  if (plan.stages.size() != stages) {
    check.Differs(NumberedSection(kStageSection, plan.stages.size() - 1), "",
                  absl::StrCat("the plan has ", plan.stages.size(), " stages, the job ", stages));
    return;
  }
  const PlanText wanted =
      ToPlanText(job, planned.model, UnitStageCosts(job, planned.model), kUnitCosts);
  for (size_t stage = 0; stage < stages; ++stage) {
    const std::string section = NumberedSection(kStageSection, stage);
    check.Same(section, kLayersKey, LayersText(plan.stages[stage].layers),
               LayersText(job.partition.stages[stage]));
    const std::string& names = plan.stages[stage].names;
    if (!names.empty()) check.Same(section, kNamesKey, names, wanted.stages[stage].names);
    check.Same(section, kWorkerKey, plan.stages[stage].worker.value,
               job.training.worker_of_stage[stage].value);
  }
}

bool IsOfMemoryPlan(const Action& action) {
  return IsMemory(action.kind) || (action.kind == ActionKind::kStep && action.group != kWholeStage);
}

void CheckPrograms(const PlanText& plan, const TrainingPlan& job, PlanCheck& check) {
  const std::vector<std::vector<Action>>& programs = plan.training.programs;
  for (size_t worker = 0; worker < programs.size() && check.status().ok(); ++worker) {
    std::vector<Action> bare = programs[worker];
    std::erase_if(bare, IsOfMemoryPlan);
    const std::vector<Action>& wanted = job.training.programs[worker];
    const auto [in_plan, in_job] =
        std::mismatch(bare.begin(), bare.end(), wanted.begin(), wanted.end());
    if (in_plan == bare.end() && in_job == wanted.end()) continue;
    const auto text = [](auto action, auto end) {
      return action == end ? std::string("nothing") : ToString(*action);
    };
    check.Differs(
        kTrainingSection, NumberedSection(kWorkerSection, worker),
        absl::StrCat("but for what moves tensors, the program has ", text(in_plan, bare.end()),
                     " as its action ", in_plan - bare.begin() + 1, ", the job's has ",
                     text(in_job, wanted.end())));
  }
}

// Whether the tensors that the group has of its layer can go without the others.
bool CanBeFirst(const ModelProfile& profile, const TensorGroup& group) {
  return group.first_tensors == 0 ||
         absl::c_linear_search(
             FirstTensorsOf(profile.layers[static_cast<size_t>(group.layers.begin)]),
             group.first_tensors);
}

// The same tensors, with bytes and times of the profile.
TensorGroup GroupLike(const TensorGroup& group, const ModelProfile& profile,
                      const StageRange& stage) {
  return GroupOf(profile, stage, group.kind, group.layers, group.first_tensors);
}

void CheckGroups(const PlanText& plan, const PlanningProblem& problem, const ModelProfile& whole,
                 PlanCheck& check) {
  for (size_t stage = 0; stage < plan.memory.stages.size(); ++stage) {
    const std::vector<PlannedGroup>& groups = plan.memory.stages[stage].groups;
    for (size_t index = 0; index < groups.size(); ++index) {
      const auto& [group, choice] = groups[index];
      const std::string section = NumberedSection(kStageSection, stage);
      const std::string key = NumberedSection(kGroupWord, index);
      const StageRange& range = problem.partition.stages[stage];
      if (!CanBeFirst(problem.profile, group)) {
        check.Differs(section, key,
                      absl::StrCat("of what layer ", group.layers.begin, " saves the first ",
                                   group.first_tensors, " tensors cannot be without the others"));
        continue;
      }
      const Bytes bytes = GroupLike(group, problem.profile, range).bytes;
      const Bytes all = GroupLike(group, whole, range).bytes;
      const bool counts =
          choice.placement != Placement::kKeep || group.kind == GroupKind::kActivations;
      if (counts && group.bytes != bytes && group.bytes != all) {
        check.Differs(
            section, key,
            absl::StrCat("the group has ", group.bytes.value, " bytes; of these ",
                         GroupKindName(group.kind), " the job's layers have ", all.value,
                         bytes == all ? "" : absl::StrCat(", and workers can move ", bytes.value)));
      }
      for (const Stripe& stripe : choice.stripes) {
        if (stripe.lender.value < DeviceCount(problem.topology)) continue;
        check.Differs(section, key,
                      absl::StrCat("lender ", stripe.lender.value, " is not one of the job's ",
                                   DeviceCount(problem.topology), " devices"));
      }
    }
  }
}

void CheckDevices(const PlanText& plan, const PlanningProblem& problem, PlanCheck& check) {
  if (plan.topology.devices.empty()) return;
  const std::string name = NameForPlan(problem.topology.name);
  const bool keeps_to_none = DeviceCount(problem.topology) == 0;
  if (plan.topology.name != name) {
    const std::string is_for = absl::StrCat("the plan is for '", plan.topology.name, "', ");
    if (keeps_to_none || absl::StartsWith(problem.topology.name, kWorkersOf)) {
      check.Differs(kTopologySection, kNameKey,
                    absl::StrCat(is_for, "and the job's workers keep to no topology"),
                    "; set topology.throttle, or plan without topology.name");
    } else {
      check.Differs(
          kTopologySection, kNameKey,
          absl::StrCat(is_for, "the job runs on '", name, "' (topology.name, topology.throttle)"));
    }
  }
  if (keeps_to_none) return;
  const std::vector<DeviceId>& devices = plan.mapping.device_of_worker;
  for (size_t worker = 0; worker < devices.size(); ++worker) {
    if (devices[worker].value < DeviceCount(problem.topology)) continue;
    check.Differs(NumberedSection(kWorkerSection, worker), kWorkerDeviceKey,
                  absl::StrCat("device ", devices[worker].value, " is not one of the job's ",
                               DeviceCount(problem.topology)));
  }
}

// Bytes and times as the problem has them.
MemoryPlan WithGroupsOf(const PlanningProblem& problem, MemoryPlan plan) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    for (PlannedGroup& planned : plan.stages[stage].groups) {
      const Bytes before = planned.group.bytes;
      planned.group = GroupLike(planned.group, problem.profile, problem.partition.stages[stage]);
      std::vector<Stripe>& stripes = planned.choice.stripes;
      if (stripes.empty() || planned.group.bytes == before) continue;
      std::vector<LenderWeight> weights;
      for (const Stripe& stripe : stripes) weights.push_back({stripe.lender, stripe.bytes.value});
      stripes = CutStripes(planned.group.bytes, weights, problem.granule);
    }
  }
  return plan;
}

bool IsSwapped(const PlannedGroup& planned) { return IsSwap(planned.choice.placement); }

// Programs that cannot run are no failure of ours where a file has them.
absl::Status BadInput(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) ? absl::InvalidArgumentError(status.message()) : status;
}

}  // namespace

absl::StatusOr<PlanInFile> LoadPlanInFile(const JobConfig& job) {
  absl::StatusOr<std::string> text = ReadTextFile(job.memory.plan, "plan");
  if (!text.ok()) return ConfigError(job, kPlanKey, text.status().message());
  return PlanInText(job.memory.plan, *std::move(text));
}

absl::StatusOr<PlanInFile> LoadPlanAt(const std::string& path) {
  SIPHON_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path, "plan"));
  return PlanInText(path, std::move(text));
}

absl::StatusOr<PlanInFile> PlanInText(const std::string& name, std::string text) {
  PlanInFile file{.path = name, .text = std::move(text)};
  absl::StatusOr<PlanText> plan = ParsePlanText(file.text);
  if (!plan.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ":", plan.status().message()));
  }
  file.plan = *std::move(plan);
  return file;
}

std::string PlaceInPlan(const PlanInFile& file, absl::string_view section, absl::string_view key) {
  int number = 0;
  int header = 1;
  bool within = false;
  for (const absl::string_view whole : absl::StrSplit(file.text, '\n')) {
    ++number;
    const absl::string_view line = whole.substr(0, whole.find('#'));
    const absl::string_view words = absl::StripAsciiWhitespace(line);
    if (words.empty()) continue;
    if (!absl::ascii_isspace(static_cast<unsigned char>(line[0]))) {
      within = words == section;
      if (within) header = number;
      continue;
    }
    const size_t colon = words.find(':');
    if (!within || colon == absl::string_view::npos) continue;
    if (absl::StripAsciiWhitespace(words.substr(0, colon)) != key) continue;
    const absl::string_view value = absl::StripLeadingAsciiWhitespace(words.substr(colon + 1));
    return absl::StrCat(file.path, ":", number, ":", value.data() - whole.data() + 1);
  }
  return absl::StrCat(file.path, ":", header, ":1");
}

absl::Status CheckPlanOfJob(const PlanInFile& file, const PlannedJob& planned) {
  const PlanText& plan = file.plan;
  const TrainingPlan& job = planned.plan;
  PlanCheck check(file);
  check.Same(kJobSection, kModelKey, plan.model, NameForPlan(planned.model.options.kind));
  check.Same(kJobSection, kScheduleKey, plan.schedule, job.schedule_name);
  check.Same(kJobSection, kMicrobatchKey, plan.microbatch, job.microbatch);
  check.Same(kJobSection, kGlobalBatchKey, plan.global_batch, job.global_batch);
  CheckStrategy(plan, check);
  check.Same(kJobSection, kReplicasKey, plan.training.replicas, job.training.replicas);
  const int workers = WorkerCount(job.training);
  if (WorkerCount(plan.training) != workers) {
    check.Differs(
        NumberedSection(kWorkerSection, plan.workers.size() - 1), "",
        absl::StrCat("the plan has ", WorkerCount(plan.training), " workers, the job ", workers));
  }
  if (check.status().ok()) CheckStages(plan, planned, check);
  if (check.status().ok()) CheckPrograms(plan, job, check);
  return check.status();
}

bool MovesAnything(const MemoryPlan& plan) {
  return absl::c_any_of(plan.stages, [](const StagePlan& stage) {
    return stage.update == UpdatePlace::kHost || absl::c_any_of(stage.groups, IsSwapped);
  });
}

bool ParksOnDrives(const MemoryPlan& plan) {
  return absl::c_any_of(plan.stages, [](const StagePlan& stage) {
    return absl::c_any_of(stage.groups, [](const PlannedGroup& planned) {
      return planned.choice.placement == Placement::kNvmeSwap ||
             planned.choice.second_choice == Placement::kNvmeSwap;
    });
  });
}

absl::StatusOr<PlannedStep> StepInFile(const PlanInFile& file, const PlanningProblem& problem,
                                       const ModelProfile& whole) {
  PlanCheck check(file);
  CheckDevices(file.plan, problem, check);
  CheckGroups(file.plan, problem, whole, check);
  SIPHON_RETURN_IF_ERROR(check.status());
  PlannedStep step{.memory = WithGroupsOf(problem, file.plan.memory),
                   .mapping = file.plan.mapping,
                   .schedule = file.plan.training};
  if (step.mapping.device_of_worker.empty()) {
    step.mapping = IdentityMapping(WorkerCount(step.schedule) * step.schedule.replicas);
  }
  const std::string place = PlaceInPlan(file, kTrainingSection, "");
  SIPHON_RETURN_IF_ERROR(BadInput(
      Annotate(ValidateSchedule(step.schedule, SchedulePurpose::kTraining, step.memory), place)));
  absl::StatusOr<SimulatedStep> simulated =
      Simulate(SimulationOf(problem, step.mapping, step.memory, step.schedule));
  if (!simulated.ok()) return BadInput(Annotate(simulated.status(), place));
  step.simulated = *std::move(simulated);
  return step;
}

}  // namespace siphon
