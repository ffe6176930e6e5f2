// What holds of every lowered program, whatever the plan: followed action by action.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/schedules/build_schedule.h"
#include "planner/lower_schedule.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/steps_on_host.h"
#include "planner/validate_schedule.h"
#include "tests/planner/dice.h"

namespace siphon {
namespace {

constexpr int kMostGroups = 5;  // of a stage

MemoryPlan RandomPlan(int stages, Dice& dice) {
  MemoryPlan plan;
  for (int stage = 0; stage < stages; ++stage) {
    StagePlan& planned = plan.stages.emplace_back();
    for (int group = dice.Roll(0, kMostGroups); group > 0; --group) {
      const auto kind = static_cast<GroupKind>(dice.Roll(0, kGroupKinds - 1));
      auto placement = static_cast<Placement>(dice.Roll(0, kPlacements - 1));
      if (kind != GroupKind::kActivations && placement == Placement::kRecompute) {
        placement = Placement::kKeep;
      }
      planned.groups.push_back(
          {.group = {.kind = kind, .layers = {group, group + 1}, .bytes = Bytes(8)},
           .choice = {.placement = placement}});
    }
    if (dice.Roll(0, 2) > 0) continue;
    planned.update = UpdatePlace::kHost;
    for (PlannedGroup& group : planned.groups) {
      group.choice.steps_on_device = StepsOnHost(planned, group) && dice.Roll(0, 1) == 0;
    }
  }
  return plan;
}

// Where a group is, as its worker's program tells.
// kToDrop and kToLeave: the next action that needs it has it only while it is at its layers.
enum class Where { kNowhere, kIn, kLeaving, kAway, kDropped, kToDrop, kToLeave };

// Follows every group through the programs by the rules of memory_plan.h; "" or what breaks them.
std::string BrokenRule(const Schedule& schedule, const MemoryPlan& plan) {
  for (const std::vector<Action>& program : schedule.programs) {
    std::map<std::tuple<int, int, int>, Where> where;  // stage, group, microbatch
    std::set<std::pair<int, int>> home;                // stage, group: in between steps
    for (size_t place = 0; place < program.size(); ++place) {
      const Action& action = program[place];
      const int stage = action.stage.value;
      const std::vector<PlannedGroup>& groups = plan.stages[stage].groups;
      if (IsMemory(action.kind)) {
        const PlannedGroup& planned = groups[action.group.value];
        const bool saved = planned.group.kind == GroupKind::kActivations;
        const auto [found, first] =
            where.insert({{stage, action.group.value, action.microbatch.value},
                          saved ? Where::kNowhere : Where::kAway});
        Where& now = found->second;
        if (first && planned.group.kind == GroupKind::kOptimizerState &&
            action.kind == ActionKind::kSwapOut) {
          home.insert({stage, action.group.value});
          now = Where::kIn;
        }
        const auto move = [&](Where from, Where to) { return std::exchange(now, to) == from; };
        bool right = false;
        if (!saved && now == Where::kAway && action.kind != ActionKind::kSwapIn) {
          const bool drops = action.kind == ActionKind::kDrop;
          const GroupKind kind = drops ? GroupKind::kParameters : GroupKind::kGradients;
          if (planned.group.kind != kind) return ToString(action);
          now = drops ? Where::kToDrop : Where::kToLeave;
          continue;
        }
        switch (action.kind) {
          case ActionKind::kDrop:
            right = saved ? move(Where::kNowhere, Where::kDropped) : move(Where::kIn, Where::kAway);
            break;
          case ActionKind::kSwapOut:
            right = move(saved ? Where::kNowhere : Where::kIn, Where::kLeaving);
            break;
          case ActionKind::kSwapOutEnd:
            right = move(Where::kLeaving, Where::kAway);
            break;
          case ActionKind::kRecompute:
            right = saved && move(Where::kDropped, Where::kIn);
            break;
          default:
            right = move(Where::kAway, Where::kIn);
        }
        if (!right) return ToString(action);
        continue;
      }
      const bool computes = IsCompute(action.kind) || action.kind == ActionKind::kStep;
      for (int group = 0; computes && group < static_cast<int>(groups.size()); ++group) {
        const auto& [tensors, choice] = groups[group];
        if (!IsSwap(choice.placement)) continue;
        if (tensors.kind == GroupKind::kActivations) {
          const auto found = where.find({stage, group, action.microbatch.value});
          const bool backward =
              action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput;
          if (backward && found != where.end() && found->second != Where::kIn) {
            return ToString(action);
          }
          continue;
        }
        const bool own_step = action.kind == ActionKind::kStep && action.group == GroupId(group) &&
                              !StepsOnHost(plan.stages[stage], groups[group]);
        const bool needed =
            tensors.kind == GroupKind::kParameters ? true
            : tensors.kind == GroupKind::kGradients
                ? action.kind != ActionKind::kForward && action.kind != ActionKind::kBackwardInput
                : own_step;
        // A step on the host uses weights where they are.
        if (action.kind == ActionKind::kStep && tensors.kind != GroupKind::kOptimizerState &&
            choice.placement == Placement::kHostSwap &&
            AllStepOnHost(plan.stages[stage], tensors.layers)) {
          continue;
        }
        const auto found = where.find({stage, group, kNoMicrobatch.value});
        if (needed && IsCompute(action.kind) && found != where.end()) {
          Where& now = found->second;
          const bool leaves = now == Where::kToLeave;
          if (leaves || now == Where::kToDrop) {
            now = leaves ? Where::kLeaving : Where::kAway;
            continue;
          }
        }
        if (needed && (found == where.end() || found->second != Where::kIn)) {
          return ToString(action);
        }
      }
    }
    for (const auto& [key, now] : where) {
      const auto [stage, group, microbatch] = key;
      const bool saved = plan.stages[stage].groups[group].group.kind == GroupKind::kActivations;
      if (now == Where::kLeaving) return "a copy out at the end of the step";
      const Where end = home.contains({stage, group}) ? Where::kIn : Where::kAway;
      if (!saved && now != end) return "a group that is not at the end where it began";
    }
  }
  return "";
}

Schedule WithoutMemory(Schedule schedule) {
  for (std::vector<Action>& program : schedule.programs) {
    std::erase_if(program, [](const Action& action) {
      return IsMemory(action.kind) ||
             (action.kind == ActionKind::kStep && action.group != kWholeStage);
    });
  }
  return schedule;
}

TEST(LowerMemoryPlan, KeepsTheRulesForEveryScheduleAndAnyPlan) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Dice dice(seed);
    const std::vector<ScheduleEntry>& registry = ScheduleRegistry();
    const ScheduleEntry& entry = registry[seed % registry.size()];
    if (entry.update == WeightUpdate::kAsynchronous) continue;
    const int workers = dice.Roll(1, 4);
    const auto built = BuildSchedule(
        entry.name,
        {.workers = workers, .chunks = entry.chunks, .microbatches = workers * dice.Roll(2, 3)});
    if (!built.ok()) continue;  // a file's schedule, or one that needs another shape
    Schedule schedule = *built;
    if (dice.Roll(0, 1) == 0) {
      schedule = AppendOptimizerStep(InsertCommunication(schedule).value(), {});
    }
    const int stages = StageCount(schedule);
    const MemoryPlan plan = RandomPlan(stages, dice);
    LowerMemoryOptions options;
    for (int stage = 0; stage < stages; ++stage) {
      options.timing.push_back({.forwards_to_leave = dice.Roll(0, 3),
                                .actions_to_come_back = dice.Roll(0, 4),
                                .actions_before_step = dice.Roll(0, 2),
                                .groups_ahead = dice.Roll(0, 2),
                                .groups_away_between_steps = dice.Roll(0, 3),
                                .home_beside_host = dice.Roll(0, 1) == 0,
                                .forwards_to_leave_home = dice.Roll(0, 4),
                                .actions_to_come_home = dice.Roll(0, 5)});
      options.direct.push_back(static_cast<DirectBackward>(dice.Roll(0, 1)));
      options.weights.push_back(static_cast<WeightResidence>(dice.Roll(0, 1)));
      options.state_times.push_back({.gone = {dice.Roll(0, 3), dice.Roll(0, 5)},
                                     .back = {dice.Roll(0, 7), dice.Roll(0, 4)},
                                     .in = {dice.Roll(0, 6), dice.Roll(0, 3)}});
    }
    for (int layer = 0; layer < kMostGroups + 1; ++layer) {
      options.made_ahead.push_back(dice.Roll(0, 4) - 1);
      options.shares.push_back(dice.Roll(1, LowerMemoryOptions::kShares));
    }
    const auto lowered = LowerMemoryPlan(schedule, plan, options);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const std::string what = entry.name + ", seed " + std::to_string(seed);
    EXPECT_EQ(WithoutMemory(*lowered), schedule) << what;
    EXPECT_EQ(BrokenRule(*lowered, plan), "") << what << "\n" << ToString(*lowered);
    const absl::Status valid = ValidateSchedule(*lowered, SchedulePurpose::kTraining, plan);
    EXPECT_TRUE(valid.ok()) << what << ": " << valid;
  }
}

}  // namespace
}  // namespace siphon
