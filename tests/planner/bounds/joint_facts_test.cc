#include "planner/bounds/facts/joint_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/linear/solve_linear_program.h"
#include "tests/planner/bounds/bounds_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

StepSpan SpanOf(const JointFacts& facts, int worker, int from, int to) {
  for (const StepSpan& span : facts.spans) {
    if (span.worker == worker && span.from == from && span.to == to) return span;
  }
  ADD_FAILURE() << "no span of worker " << worker << " from " << from << " to " << to;
  return {};
}

PlanningProblem TwoFullWorkers(const std::string& schedule, int microbatches) {
  PlanningProblem problem = ProblemOf(
      AppendOptimizerStep(InsertCommunication(ScheduleOf(schedule, 2, microbatches)).value(), {}),
      PlainLayer(), Bytes(150'000), 2);
  problem.topology = WithHost(Islands(2), 2, {.to_host = kBytePerNano, .from_host = kBytePerNano});
  return problem;
}

// gpipe: worker 1's first backward, at 50 us, is before that of worker 0: what both have away has
// left before the latter, and comes back behind the former.
TEST(JointFacts, OfGpipeAreBeforeTheLastFirstBackwardAndBehindTheFirst) {
  const JointFacts facts = BoundFactsOf(TwoFullWorkers("gpipe", 2)).value().joint;
  constexpr WindowPlace kOfWorker0{0, 0};
  constexpr WindowPlace kOfWorker1{1, 0};
  EXPECT_THAT(SpanOf(facts, 0, StepSpan::kOpen, 0).leaving, ElementsAre(kOfWorker0, kOfWorker1));
  EXPECT_THAT(SpanOf(facts, 0, 0, StepSpan::kOpen).returning, ElementsAre(kOfWorker0));
  EXPECT_THAT(SpanOf(facts, 1, StepSpan::kOpen, 0).leaving, ElementsAre(kOfWorker1));
  EXPECT_THAT(SpanOf(facts, 1, 0, StepSpan::kOpen).returning, ElementsAre(kOfWorker0, kOfWorker1));
  // All workers meet for the norm of the gradients before any of them steps.
  EXPECT_THAT(facts.steps_behind, ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1)));
}

// Workers without too much have no windows, and no part in others' spans.
TEST(JointFacts, AreThoseOfFullWorkersOnly) {
  PlanningProblem problem = TwoFullWorkers("gpipe", 2);
  problem.capacity[1] = Bytes(0);
  const JointFacts facts = BoundFactsOf(problem).value().joint;
  EXPECT_THAT(SpanOf(facts, 0, StepSpan::kOpen, 0).leaving, ElementsAre(WindowPlace{0, 0}));
  for (const StepSpan& span : facts.spans) EXPECT_EQ(span.worker, 0);
}

TEST(JointFacts, AreNotMadeForReplicas) {
  PlanningProblem problem = TwoFullWorkers("gpipe", 2);
  problem.schedule.replicas = 2;
  problem.topology = Islands(4);
  const JointFacts facts = BoundFactsOf(problem).value().joint;
  EXPECT_THAT(facts.spans, IsEmpty());
  EXPECT_THAT(facts.steps_behind, IsEmpty());
}

// One worker whose 100,000 bytes of optimizer state do not fit beside what it saves: at 1 byte a
// ns they leave behind the last backward only, at 60 us; until then they may be on their way in.
TEST(JointFacts, StateLeavesBehindTheLastBackward) {
  if (!HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has no CBC";
  LayerProfile layer = PlainLayer();
  layer.optimizer_state = Bytes(100'000);
  PlanningProblem problem =
      ProblemOf(AppendOptimizerStep(ScheduleOf("gpipe", 1, 2), {}), layer, Bytes(200'000));
  problem.topology = WithHost(Islands(1), 1, {.to_host = kBytePerNano, .from_host = kBytePerNano});
  const Nanos bound = BoundOf(problem).step_time;
  // Instead of state, one of the two microbatches may be away, or the first computed again.
  EXPECT_GT(bound, Nanos(60'000));
  EXPECT_LE(bound, Nanos(70'000));
  // Both microbatches are gone, or all of the state is: the step ends 100 us behind the backwards.
  problem.profile.layers[0].saved.clear();
  problem.capacity = {Bytes(1)};
  problem.profile.layers[0].saved = {{"saved", Bytes(1)}};
  const Nanos alone = BoundOf(problem).step_time;
  EXPECT_GE(alone, Nanos(159'990));
  EXPECT_LE(alone, Nanos(160'010));
}

}  // namespace
}  // namespace siphon
