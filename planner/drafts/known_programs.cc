#include "planner/drafts/known_programs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "planner/drafts/step_key.h"
#include "planner/lowering/check_lowering.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Actions of all programs that are known of a worker, if each has so many times those of the
// program that it is lowered from; and how many programs are known in any case.
constexpr size_t kMostActions = 400'000;
constexpr size_t kTimesLowered = 8;
constexpr size_t kFewestPrograms = 8;

// What the options say of the groups' first layers.
bool AreOf(const std::vector<int>& known, const StagePlan& plan, const std::vector<int>& layers) {
  auto next = known.begin();
  for (const auto& [group, choice] : plan.groups) {
    if (group.kind == GroupKind::kActivations && *next++ != layers[group.layers.begin]) {
      return false;
    }
  }
  return true;
}

std::vector<int> OfGroups(const StagePlan& plan, const std::vector<int>& layers) {
  std::vector<int> of_groups;
  for (const auto& [group, choice] : plan.groups) {
    if (group.kind == GroupKind::kActivations) of_groups.push_back(layers[group.layers.begin]);
  }
  return of_groups;
}

void AddTiming(const SwapTiming& timing, StepKey& key) {
  for (const int times :
       {timing.forwards_to_leave, timing.actions_to_come_back, timing.actions_before_step,
        timing.groups_ahead, timing.groups_away_between_steps, timing.forwards_to_leave_home,
        timing.actions_to_come_home, timing.actions_to_stay, timing.groups_out_behind,
        timing.groups_in_before}) {
    key.Add(times);
  }
  key.Add(static_cast<int64_t>(timing.turn));
}

uint64_t KeyOf(const std::vector<StageId>& stages, const MemoryPlan& plan,
               const LowerMemoryOptions& options) {
  StepKey key;
  for (const StageId stage : stages) {
    const StagePlan& planned = plan.stages[stage.value];
    key.Add(planned);
    AddTiming(options.timing[stage.value], key);
    key.Add(static_cast<int64_t>(options.direct[stage.value]));
    key.Add(static_cast<int64_t>(options.weights[stage.value]));
    const StateTimes& times = options.state_times[stage.value];
    for (const std::vector<int>* each : {&times.gone, &times.back, &times.in}) {
      for (const int time : *each) key.Add(time);
    }
    for (const auto& [group, choice] : planned.groups) {
      if (group.kind != GroupKind::kActivations) continue;
      key.Add(options.made_ahead[group.layers.begin]);
      key.Add(options.shares[group.layers.begin]);
    }
  }
  return key.Get();
}

}  // namespace

KnownPrograms::KnownPrograms(const Schedule& schedule)
    : schedule_(schedule), known_(schedule.programs.size()) {
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    stages_.push_back(StagesOf(schedule, WorkerId(worker)));
    const size_t actions = kTimesLowered * schedule.programs[worker].size() + 1;
    known_[worker].most = std::max(kFewestPrograms, kMostActions / actions);
  }
}

bool KnownPrograms::IsOf(const StageDecisions& known, StageId stage, const MemoryPlan& plan,
                         const LowerMemoryOptions& options) {
  const int index = stage.value;
  return known.timing == options.timing[index] && known.direct == options.direct[index] &&
         known.weights == options.weights[index] &&
         known.state_times == options.state_times[index] && known.plan == plan.stages[index] &&
         AreOf(known.made_ahead, known.plan, options.made_ahead) &&
         AreOf(known.shares, known.plan, options.shares);
}

KnownPrograms::StageDecisions KnownPrograms::DecisionsOf(StageId stage, const MemoryPlan& plan,
                                                         const LowerMemoryOptions& options) {
  const int index = stage.value;
  return {.plan = plan.stages[index],
          .timing = options.timing[index],
          .direct = options.direct[index],
          .weights = options.weights[index],
          .state_times = options.state_times[index],
          .made_ahead = OfGroups(plan.stages[index], options.made_ahead),
          .shares = OfGroups(plan.stages[index], options.shares)};
}

bool KnownPrograms::HaveSamePlans(const Program& a, const Program& b) {
  return std::equal(a.decided.begin(), a.decided.end(), b.decided.begin(),
                    [](const StageDecisions& one, const StageDecisions& other) {
                      return one.plan == other.plan;
                    });
}

const KnownPrograms::Program& KnownPrograms::ProgramOf(int worker, const MemoryPlan& plan,
                                                       const LowerMemoryOptions& options) {
  Known& known = known_[worker];
  const std::vector<StageId>& stages = stages_[worker];
  const uint64_t key = KeyOf(stages, plan, options);
  const auto [first, last] = known.by_key.equal_range(key);
  const auto found = std::find_if(first, last, [&](const Index::value_type& entry) {
    return std::equal(stages.begin(), stages.end(), entry.second->decided.begin(),
                      [&](StageId stage, const StageDecisions& decided) {
                        return IsOf(decided, stage, plan, options);
                      });
  });
  if (found != last) {
    known.programs.splice(known.programs.begin(), known.programs, found->second);
    return known.programs.front();
  }
  ++lowered_;
  Program program{.key = key, .actions = LowerProgram(schedule_, WorkerId(worker), plan, options)};
  for (const StageId stage : stages) program.decided.push_back(DecisionsOf(stage, plan, options));
  program.content = ContentOf(program);
  return Remember(known, std::move(program));
}

uint64_t KnownPrograms::ContentOf(const Program& program) {
  StepKey key;
  for (const StageDecisions& decided : program.decided) key.Add(decided.plan);
  for (const Action& action : program.actions) {
    key.Add(static_cast<int64_t>(action.kind));
    key.Add(action.stage.value);
    key.Add(action.microbatch.value);
    key.Add(action.group.value);
  }
  return key.Get();
}

void KnownPrograms::Forget(std::list<Program>::iterator program, uint64_t hash, Index& index) {
  const auto [first, last] = index.equal_range(hash);
  index.erase(std::find_if(
      first, last, [&](const Index::value_type& entry) { return entry.second == program; }));
}

// Many decisions mean nothing for stages that swap nothing: their program keeps its name.
const KnownPrograms::Program& KnownPrograms::Remember(Known& known, Program program) {
  const auto [first, last] = known.by_content.equal_range(program.content);
  const auto same = std::find_if(first, last, [&](const Index::value_type& entry) {
    return entry.second->actions == program.actions && HaveSamePlans(*entry.second, program);
  });
  program.name = same != last ? same->second->name : names_++;
  known.programs.push_front(std::move(program));
  const auto added = known.programs.begin();
  known.by_key.emplace(added->key, added);
  known.by_content.emplace(added->content, added);
  if (known.programs.size() > known.most) {
    const auto oldest = std::prev(known.programs.end());
    Forget(oldest, oldest->key, known.by_key);
    Forget(oldest, oldest->content, known.by_content);
    known.programs.pop_back();
  }
  return *added;
}

absl::StatusOr<LoweredPlan> KnownPrograms::Lower(const MemoryPlan& plan,
                                                 const LowerMemoryOptions& options) {
  SIPHON_RETURN_IF_ERROR(CheckLowering(schedule_, plan, options));
  LoweredPlan lowered{.schedule = {.microbatches = schedule_.microbatches,
                                   .worker_of_stage = schedule_.worker_of_stage,
                                   .replicas = schedule_.replicas,
                                   .weight_rule = schedule_.weight_rule}};
  for (int worker = 0; worker < WorkerCount(schedule_); ++worker) {
    const Program& program = ProgramOf(worker, plan, options);
    lowered.schedule.programs.push_back(program.actions);
    lowered.names.push_back(program.name);
  }
  return lowered;
}

}  // namespace siphon
