// The paper's integer program (hal-03580767, section 6) as rows: every plan is one of its
// solutions.

#include "planner/weight_offload/offload_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "planner/bounds/linear/solve_linear_program.h"
#include "planner/weight_offload/layer_to_layer.h"
#include "planner/weight_offload/plan_weight_offload.h"
#include "tests/planner/weight_offload/weight_offload_testing.h"

namespace siphon {
namespace {

// What a simulated step is in the program's columns: each transfer at an even rate, so that an
// interval has the part of it that lies within.
class StepValues {
 public:
  StepValues(const WeightOffloadProblem& problem, const WeightOffloadPlan& plan,
             const WeightOffloadStep& step)
      : problem_(problem),
        plan_(plan),
        step_(step),
        made_(BuildOffloadProgram(problem)),
        values_(made_.program.columns.size(), 0) {
    const int count = OperationCount(problem);
    begins_.resize(count);
    for (size_t task = 0; task < plan.tasks.size(); ++task) {
      const int layer = plan.tasks[task].layer;
      const int layers = count / 2;
      if (plan.tasks[task].kind == WeightTaskKind::kBackward) {
        begins_[layers - 1 - layer] = step.intervals[task].begin;
      } else if (plan.tasks[task].kind == WeightTaskKind::kForward) {
        begins_[layers + layer] = step.intervals[task].begin;
      }
    }
    for (int operation = 0; operation < count; ++operation) {
      const Nanos idle = Length(operation) - DurationOf(problem, operation);
      values_[made_.idle[operation]] = Part(idle.value, made_.unit.value);
    }
    for (const OffloadColumns& columns : made_.layers) Fill(columns);
  }

  const OffloadProgram& made() const { return made_; }
  const std::vector<double>& values() const { return values_; }

 private:
  static double Part(int64_t value, int64_t unit) {
    return static_cast<double>(value) / static_cast<double>(unit);
  }
  int Count() const { return static_cast<int>(begins_.size()); }

  // To the start of the next operation; that after the last is of the next step.
  Nanos End(int operation) const {
    return operation + 1 < Count() ? begins_[operation + 1] : step_.step_time + begins_[0];
  }
  Nanos Length(int operation) const { return End(operation) - begins_[operation]; }

  // How much of [begin, end) lies in the operation's interval, of this step or of the one before.
  double Within(int operation, const WeightTaskInterval& task) const {
    Nanos both;
    for (const Nanos shift : {Nanos(0), step_.step_time}) {
      const Nanos from = std::max(begins_[operation], task.begin + shift);
      const Nanos to = std::min(End(operation), task.end + shift);
      both += std::max(Nanos(0), to - from);
    }
    return Part(both.value, std::max<int64_t>(1, (task.end - task.begin).value));
  }

  // The interval, counted from the layer's backward, in which the weight is deleted. At the start
  // of an operation it is away already.
  int DeletedIn(const WeightDeletion& deletion, int backward) const {
    Nanos at;
    for (const int task : deletion.after) at = std::max(at, step_.intervals[task].end);
    int operation = Count() - 1;
    for (int other = 0; other < Count(); ++other) {
      if (begins_[other] < at && at <= End(other)) operation = other;
    }
    return (operation - backward + Count()) % Count();
  }

  void Fill(const OffloadColumns& columns) {
    const int backward = Count() / 2 - 1 - columns.layer;
    const double weight = Part(problem_.layers[columns.layer].weight.value, made_.byte_unit.value);
    std::vector<double> sent(Count(), 0);
    std::vector<double> held_more(Count(), 0);  // what an interval adds to m
    for (size_t task = 0; task < plan_.tasks.size(); ++task) {
      if (plan_.tasks[task].layer != columns.layer) continue;
      const bool sends = plan_.tasks[task].kind == WeightTaskKind::kSend;
      if (!sends && plan_.tasks[task].kind != WeightTaskKind::kFetch) continue;
      for (int t = 0; t < Count(); ++t) {
        const double part = weight * Within((backward + t) % Count(), step_.intervals[task]);
        if (sends) {
          sent[t] += part;
        } else {
          values_[columns.fetched[t]] += part;
          held_more[t] += part;
        }
      }
    }
    for (const WeightDeletion& deletion : plan_.deletions) {
      if (deletion.layer != columns.layer) continue;
      const int t = DeletedIn(deletion, backward);
      held_more[t] -= weight;
      values_[columns.leaves[t < 2 * columns.layer + 1 ? 0 : 1]] += 1;
    }
    double held = weight;
    double sum = 0;
    for (int t = 0; t <= Count(); ++t) {
      values_[columns.held[t]] = held;
      // What is sent a second time (Greedy*) is on the host already.
      values_[columns.sent[t]] = std::min(sum, weight);
      if (t == Count()) break;
      held += held_more[t];
      sum += sent[t];
    }
  }

  const WeightOffloadProblem& problem_;
  const WeightOffloadPlan& plan_;
  const WeightOffloadStep& step_;
  const OffloadProgram made_;
  std::vector<double> values_;
  std::vector<Nanos> begins_;  // [operation]
};

// Transfers take whole nanoseconds, so that a column may be beyond its place by rounding only.
constexpr double kTolerance = 1e-9;

void ExpectSolves(const LinearProgram& program, const std::vector<double>& values, int round) {
  for (size_t column = 0; column < values.size(); ++column) {
    ASSERT_GE(values[column], program.columns[column].lower - kTolerance)
        << "column " << column << ", round " << round;
    ASSERT_LE(values[column], program.columns[column].upper + kTolerance)
        << "column " << column << ", round " << round;
  }
  for (size_t row = 0; row < program.rows.size(); ++row) {
    double sum = 0;
    for (const LinearTerm& term : program.rows[row].terms) {
      sum += term.coefficient * values[term.column];
    }
    ASSERT_GE(sum, program.rows[row].least - kTolerance) << "row " << row << ", round " << round;
  }
}

double CostOf(const LinearProgram& program, const std::vector<double>& values) {
  double cost = 0;
  for (size_t column = 0; column < values.size(); ++column) {
    cost += program.columns[column].cost * values[column];
  }
  return cost;
}

void ExpectIsASolution(const WeightOffloadProblem& problem, const WeightOffloadPlan& plan,
                       int round) {
  const WeightOffloadStep step = Simulated(problem, plan);
  const StepValues values(problem, plan, step);
  ExpectSolves(values.made().program, values.values(), round);
  const double idle = static_cast<double>(step.idle.value);
  EXPECT_NEAR(CostOf(values.made().program, values.values()) *
                  static_cast<double>(values.made().unit.value),
              idle, 1e-6 * (1 + idle))
      << "round " << round;
}

// Theorem 2: "any solution can be transformed into a set of variables that fulfill these
// constraints", and costs there what it idles for.
TEST(OffloadProgram, EveryPlanIsASolutionThatCostsItsIdleTime) {
  RandomProblems problems(11);
  int layer_to_layer = 0;
  for (int round = 0; round < 200; ++round) {
    const WeightOffloadProblem problem = problems.Next(8, 40);
    for (const Discount discount : {Discount::kUse, Discount::kIgnore}) {
      const auto choice = PlanWeightOffload(problem, discount);
      ASSERT_TRUE(choice.ok()) << choice.status();
      ExpectIsASolution(problem, choice->scheduled.plan, round);
    }
    const auto trimmed = PlanTrimmedWeightOffload(problem);
    ASSERT_TRUE(trimmed.ok()) << trimmed.status();
    ExpectIsASolution(problem, trimmed->scheduled.plan, round);
    if (HasFatalFailure()) return;
    const WeightOffloadPlan alone = LayerToLayerPlan(problem);
    if (!SimulateWeightOffload(problem, alone).ok()) continue;  // its two layers do not fit
    ExpectIsASolution(problem, alone, round);
    ++layer_to_layer;
  }
  EXPECT_GT(layer_to_layer, 20);
}

TEST(OffloadProgram, HasColumnsAndRowsInProportionToLayersTimesOperations) {
  const OffloadProgram made = BuildOffloadProgram(EqualLayers(3, 1, 1, 10, 0, 30));
  // Idle 6; of a layer 7 held, 7 sent, 6 fetched, 2 choices; memory lacked in the 3 backwards,
  // which hold a gradient too.
  EXPECT_EQ(made.program.columns.size(), 6u + 3u * 22u + 3u);
  // Of a layer 6 sent, 6 deleted, 5 not lost, 1 not in its backward, 4 of whole weights; 12 of the
  // link; 3 of memory.
  EXPECT_EQ(made.program.rows.size(), 3u * 22u + 12u + 3u);
  EXPECT_EQ(made.unit, Nanos(6));
  EXPECT_EQ(made.lacked, (std::vector<int>{72, 73, 74, -1, -1, -1}));
}

double Relaxed(const OffloadProgram& made) {
  const auto solution = SolveLinearProgram(made.program);
  EXPECT_TRUE(solution.ok()) << solution.status();
  return SafeBound(made.program, solution->multipliers) * static_cast<double>(made.unit.value);
}

// The operation's own weight counted twice, as equation 4 is printed, takes room from plans that
// keep every promise of section 3: they idle for less than the program's minimum.
TEST(OffloadProgram, TheOwnWeightCountedTwiceIsNoLowerBound) {
  if (!HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has no CBC";
  int forbidden = 0;
  RandomProblems problems(12);
  for (int round = 0; round < 50; ++round) {
    const WeightOffloadProblem problem = problems.Next(6, 40);
    const auto trimmed = PlanTrimmedWeightOffload(problem);
    ASSERT_TRUE(trimmed.ok()) << trimmed.status();
    const auto idle =
        static_cast<double>((trimmed->scheduled.step_time - ComputeTime(problem)).value);
    const double once = Relaxed(BuildOffloadProgram(problem, OwnWeight::kOnce));
    const double twice = Relaxed(BuildOffloadProgram(problem, OwnWeight::kTwice));
    ASSERT_LE(once, idle + 1e-6) << "round " << round;
    ASSERT_LE(once, twice + 1e-6) << "round " << round;
    forbidden += twice > idle + 0.5 ? 1 : 0;
  }
  EXPECT_GT(forbidden, 5) << "of 50 plans that keep every promise";
}

}  // namespace
}  // namespace siphon
