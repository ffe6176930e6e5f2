#include "planner/validate_schedule.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/lower_schedule.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

constexpr char kTwoWorkers[] =
    "0F0 0F1 0B0 0B1\n"
    "1F0 1B0 1F1 1B1\n";

constexpr char kTwoWorkersLowered[] =
    "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
    "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n";

TEST(ValidateSchedule, AcceptsSchedulesThatAreRight) {
  EXPECT_EQ(Verdict(kTwoWorkers), "valid");
  EXPECT_EQ(Verdict(kTwoWorkersLowered), "valid");
  EXPECT_EQ(Verdict("0F0 0B0 0REDUCE_NORM 0STEP"), "valid");
  EXPECT_EQ(Verdict("0F0 0I0 0F1 0W0 0I1 0W1\n1F0 1I0 1F1 1I1 1W0 1W1"), "valid");
  EXPECT_EQ(Verdict("0F0 3F0 3B0 0B0\n1F0 2F0 2B0 1B0"), "valid");
  EXPECT_EQ(Verdict("0F0 0F1\n1F0 1F1", SchedulePurpose::kForwardOnly), "valid");
}

TEST(ValidateSchedule, NamesAMissingBackward) {
  EXPECT_EQ(Verdict("0F0 0F1 0B0\n1F0 1B0 1F1 1B1"),
            "worker 0 lacks 0B1: every microbatch goes backward through every stage once\n"
            "worker 0: 0F0 0F1 0B0 <-- here\n"
            "worker 1: 1F0 1B0 1F1 1B1");
}

TEST(ValidateSchedule, NamesAMissingForward) {
  EXPECT_EQ(Verdict("0F0 0F1 0B0 0B1\n1F0 1B0 1B1"),
            "worker 1 lacks 1F1: every microbatch goes forward through every stage once\n"
            "worker 0: 0F0 0F1 0B0 0B1\n"
            "worker 1: 1F0 1B0 1B1 <-- here");
}

TEST(ValidateSchedule, NamesAnIncompleteSplitBackward) {
  EXPECT_EQ(Verdict("0F0 0I0"),
            "worker 0 lacks 0W0: a split backward has an I and a W\n"
            "worker 0: 0F0 0I0 <-- here");
  EXPECT_EQ(Verdict("0F0 0B0 0W0"),
            "worker 0 has both 0B0 and 0W0, which is a part of it\n"
            "worker 0: 0F0 0B0 0W0 <-- here");
}

TEST(ValidateSchedule, NamesABackwardBeforeItsForward) {
  EXPECT_EQ(Verdict("0F0 0F1 0B0 0B1\n1F0 1B0 1B1 1F1"),
            "worker 1 has 1B1 before 1F1, which it needs\n"
            "worker 0: 0F0 0F1 0B0 0B1\n"
            "worker 1: 1F0 1B0 1B1 <-- here 1F1");
}

TEST(ValidateSchedule, NamesWeightsBeforeInputs) {
  EXPECT_EQ(Verdict("0F0 0W0 0I0"),
            "worker 0 has 0W0 before 0I0, which it needs\n"
            "worker 0: 0F0 0W0 <-- here 0I0");
}

TEST(ValidateSchedule, NamesStagesOfOneWorkerInTheWrongOrder) {
  EXPECT_EQ(Verdict("1F0 0F0 1B0 0B0"),
            "worker 0 has 1F0 before 0F0, which it needs\n"
            "worker 0: 1F0 <-- here 0F0 1B0 0B0");
  EXPECT_EQ(Verdict("0F0 1F0 0B0 1B0"),
            "worker 0 has 0B0 before 1B0, which it needs\n"
            "worker 0: 0F0 1F0 0B0 <-- here 1B0");
}

TEST(ValidateSchedule, NamesAnActionThatStandsTwice) {
  EXPECT_EQ(Verdict("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1F0 1B1"),
            "worker 1 has 1F0 twice\n"
            "worker 0: 0F0 0F1 0B0 0B1\n"
            "worker 1: 1F0 1B0 1F1 1F0 <-- here 1B1");
}

TEST(ValidateSchedule, NamesAnActionOnTheWrongWorker) {
  Schedule schedule = ParsedSchedule(kTwoWorkers);
  std::swap(schedule.programs[0][1], schedule.programs[1][2]);
  EXPECT_EQ(Verdict(schedule),
            "worker 0 has 1F1, but stage 1 is on worker 1\n"
            "worker 0: 0F0 1F1 <-- here 0B0 0B1\n"
            "worker 1: 1F0 1B0 0F1 1B1");
}

TEST(ValidateSchedule, NamesStagesAndMicrobatchesThatDoNotExist) {
  Schedule schedule = ParsedSchedule(kTwoWorkers);
  schedule.programs[1][2].microbatch = MicrobatchId(2);
  EXPECT_EQ(Verdict(schedule),
            "worker 1 has 1F2, but microbatches are 0 to 1\n"
            "worker 0: 0F0 0F1 0B0 0B1\n"
            "worker 1: 1F0 1B0 1F2 <-- here 1B1");
  schedule = ParsedSchedule(kTwoWorkers);
  schedule.programs[1][3].stage = StageId(7);
  EXPECT_EQ(Verdict(schedule),
            "worker 1 has 7B1, but stages are 0 to 1\n"
            "worker 0: 0F0 0F1 0B0 0B1\n"
            "worker 1: 1F0 1B0 1F1 7B1 <-- here");
}

TEST(ValidateSchedule, NamesAPlacementThatCannotBe) {
  EXPECT_EQ(Verdict(Schedule{}), "the schedule has no stages");
  Schedule schedule = ParsedSchedule(kTwoWorkers);
  schedule.worker_of_stage[1] = WorkerId(2);
  EXPECT_EQ(Verdict(schedule), "stage 1 is on worker 2, but there are 2 workers");
  schedule.worker_of_stage[1] = WorkerId(0);
  EXPECT_EQ(Verdict(schedule), "worker 1 holds no stage");
  schedule = ParsedSchedule(kTwoWorkers);
  schedule.microbatches = 0;
  EXPECT_EQ(Verdict(schedule), "the schedule has 0 microbatches");
}

TEST(ValidateSchedule, RefusesAHugeMicrobatchNumberWithoutATableOfThatSize) {
  EXPECT_EQ(
      Verdict("0F0 0B0 0F2147483646"),
      "1 stages and 2147483647 microbatches need at least 2147483647 actions, but there are 3\n"
      "worker 0: 0F0 0B0 0F2147483646 <-- here");
}

TEST(ValidateSchedule, RefusesBackwardsInAForwardOnlySchedule) {
  EXPECT_EQ(Verdict("0F0 0B0", SchedulePurpose::kForwardOnly),
            "a forward-only schedule has 0B0\n"
            "worker 0: 0F0 0B0 <-- here");
}

TEST(ValidateSchedule, FindsACycleOfComputeActions) {
  // Worker 0 wants the first microbatch back before it starts the second, worker 1 the other way
  // round.
  EXPECT_EQ(Verdict("0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"),
            "deadlock: worker 0 waits in 0B0 for 1B0 of worker 1, which waits in 1F1 for 0F1 of "
            "worker 0\n"
            "worker 0: 0F0 0B0 <-- here 0F1 0B1\n"
            "worker 1: 1F0 1F1 1B0 1B1");
}

TEST(ValidateSchedule, NamesMissingCommunication) {
  EXPECT_EQ(Verdict("0F0 0SEND_F0 0RECV_B0 0B0\n1F0 1B0 1SEND_B0"),
            "worker 1 lacks 1RECV_F0: stages 0 and 1 are on different workers\n"
            "worker 0: 0F0 0SEND_F0 0RECV_B0 0B0\n"
            "worker 1: 1F0 1B0 1SEND_B0 <-- here");
  EXPECT_EQ(Verdict("0F0 0B0 0REDUCE_NORM 0STEP\n1F0 1B0 1REDUCE_NORM 1STEP"),
            "worker 0 lacks 0SEND_F0: stages 0 and 1 are on different workers\n"
            "worker 0: 0F0 0B0 0REDUCE_NORM 0STEP <-- here\n"
            "worker 1: 1F0 1B0 1REDUCE_NORM 1STEP");
}

TEST(ValidateSchedule, NamesCommunicationWithoutAPartner) {
  EXPECT_EQ(Verdict("0F0 0SEND_F0 0B0"),
            "0SEND_F0 has no partner: there is no stage 1\n"
            "worker 0: 0F0 0SEND_F0 <-- here 0B0");
  EXPECT_EQ(Verdict("0F0 0SEND_F0 1F0 1B0 0B0"),
            "0SEND_F0 has no partner: stage 1 is on worker 0 too and needs no message\n"
            "worker 0: 0F0 0SEND_F0 <-- here 1F0 1B0 0B0");
}

TEST(ValidateSchedule, NamesASendBeforeItsTensorIsMade) {
  EXPECT_EQ(Verdict("0SEND_F0 0F0 0RECV_B0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0"),
            "worker 0 has 0SEND_F0 before 0F0, which it needs\n"
            "worker 0: 0SEND_F0 <-- here 0F0 0RECV_B0 0B0\n"
            "worker 1: 1RECV_F0 1F0 1B0 1SEND_B0");
}

TEST(ValidateSchedule, NamesAnActionBeforeItsReceive) {
  EXPECT_EQ(Verdict("0F0 0SEND_F0 0RECV_B0 0B0\n1F0 1RECV_F0 1B0 1SEND_B0"),
            "worker 1 has 1F0 before 1RECV_F0, which it needs\n"
            "worker 0: 0F0 0SEND_F0 0RECV_B0 0B0\n"
            "worker 1: 1F0 <-- here 1RECV_F0 1B0 1SEND_B0");
}

TEST(ValidateSchedule, NamesReceivesInAnotherOrderThanTheSends) {
  EXPECT_EQ(Verdict("0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                    "1RECV_F1 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1"),
            "worker 1 has 1RECV_F0 behind 1RECV_F1, but worker 0 sends 0SEND_F0 before 0SEND_F1\n"
            "worker 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
            "worker 1: 1RECV_F1 1RECV_F0 <-- here 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1");
}

TEST(ValidateSchedule, FindsADeadlockUnderRendezvous) {
  // Buffered sends would carry this; with rendezvous worker 0 cannot get past its third send, which
  // worker 1 takes only after worker 0 has taken the gradient of the first.
  EXPECT_EQ(Verdict("0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0F3 0SEND_F3 0RECV_B0 0B0 0RECV_B1 0B1 "
                    "0RECV_B2 0B2 0RECV_B3 0B3\n"
                    "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1RECV_F2 1F2 1B2 1SEND_B2 "
                    "1RECV_F3 1F3 1B3 1SEND_B3"),
            "deadlock: worker 0 waits in 0SEND_F2 for 1RECV_F2 of worker 1, which waits in "
            "1SEND_B0 for 0RECV_B0 of worker 0\n"
            "worker 0: 0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 <-- here 0F3 0SEND_F3 0RECV_B0 0B0 "
            "0RECV_B1 0B1 0RECV_B2 0B2 0RECV_B3 0B3\n"
            "worker 1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1RECV_F2 1F2 1B2 "
            "1SEND_B2 1RECV_F3 1F3 1B3 1SEND_B3");
}

constexpr char kThreeForwardsAhead[] =
    "0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0RECV_B0 0B0 0RECV_B1 0B1 0RECV_B2 0B2\n";

TEST(ValidateSchedule, PostsNeighbouringCommunicationTogether) {
  // Worker 1 posts 1SEND_B0 and 1RECV_F1 as one group, so worker 0 gets past 0SEND_F1 and comes to
  // 0RECV_B0.
  EXPECT_EQ(Verdict(absl::StrCat(
                kThreeForwardsAhead,
                "1RECV_F0 1F0 1I0 1SEND_B0 1RECV_F1 1W0 1F1 1I1 1SEND_B1 1RECV_F2 1W1 1F2 1I2 "
                "1SEND_B2 1W2")),
            "valid");
  // With a compute action between them the group is gone.
  EXPECT_EQ(Verdict(absl::StrCat(
                kThreeForwardsAhead,
                "1RECV_F0 1F0 1I0 1SEND_B0 1W0 1RECV_F1 1F1 1I1 1SEND_B1 1RECV_F2 1W1 1F2 1I2 "
                "1SEND_B2 1W2")),
            "deadlock: worker 0 waits in 0SEND_F1 for 1RECV_F1 of worker 1, which waits in "
            "1SEND_B0 for 0RECV_B0 of worker 0\n"
            "worker 0: 0F0 0SEND_F0 0F1 0SEND_F1 <-- here 0F2 0SEND_F2 0RECV_B0 0B0 0RECV_B1 0B1 "
            "0RECV_B2 0B2\n"
            "worker 1: 1RECV_F0 1F0 1I0 1SEND_B0 1W0 1RECV_F1 1F1 1I1 1SEND_B1 1RECV_F2 1W1 1F2 "
            "1I2 1SEND_B2 1W2");
}

TEST(ValidateSchedule, NamesAnOptimizerStepThatIsIncompleteOrTooEarly) {
  EXPECT_EQ(Verdict("0F0 0B0 0REDUCE_NORM"),
            "worker 0 lacks 0STEP: every stage takes the optimizer step\n"
            "worker 0: 0F0 0B0 0REDUCE_NORM <-- here");
  EXPECT_EQ(
      Verdict("0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_NORM 0STEP\n1RECV_F0 1F0 1B0 1SEND_B0 1STEP"),
      "worker 1 lacks 1REDUCE_NORM: every worker has its part in the norm\n"
      "worker 0: 0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_NORM 0STEP\n"
      "worker 1: 1RECV_F0 1F0 1B0 1SEND_B0 1STEP <-- here");
  EXPECT_EQ(Verdict("0F0 0STEP 0B0"),
            "worker 0 has 0B0 behind 0STEP, which ends the step\n"
            "worker 0: 0F0 0STEP 0B0 <-- here");
  EXPECT_EQ(Verdict("0F0 0REDUCE_NORM 0B0 0STEP"),
            "worker 0 has 0B0 behind 0REDUCE_NORM, which ends the step\n"
            "worker 0: 0F0 0REDUCE_NORM 0B0 <-- here 0STEP");
  EXPECT_EQ(Verdict("0F0 0REDUCE_GRAD 0B0 0REDUCE_NORM 0STEP"),
            "worker 0 has 0B0 behind 0REDUCE_GRAD, which ends the step\n"
            "worker 0: 0F0 0REDUCE_GRAD 0B0 <-- here 0REDUCE_NORM 0STEP");
  EXPECT_EQ(Verdict("0F0 0B0 0REDUCE_NORM 0REDUCE_GRAD 0STEP"),
            "worker 0 has 0REDUCE_GRAD behind 0REDUCE_NORM, which needs it\n"
            "worker 0: 0F0 0B0 0REDUCE_NORM 0REDUCE_GRAD <-- here 0STEP");
  EXPECT_EQ(Verdict("0F0 1F0 1B0 0B0 1REDUCE_NORM 0STEP 1STEP 0REDUCE_NORM"),
            "worker 0 has 1REDUCE_NORM, but the norm is named after its first stage 0\n"
            "worker 0: 0F0 1F0 1B0 0B0 1REDUCE_NORM <-- here 0STEP 1STEP 0REDUCE_NORM");
}

// `workers` workers with `chunks` stages each in turn, every worker going depth first: F of all its
// stages, then B.
Schedule DeepSchedule(int workers, int chunks, int microbatches) {
  Schedule schedule;
  schedule.microbatches = microbatches;
  schedule.programs.resize(workers);
  const int stages = workers * chunks;
  for (int stage = 0; stage < stages; ++stage) {
    schedule.worker_of_stage.push_back(WorkerId(stage % workers));
  }
  for (int worker = 0; worker < workers; ++worker) {
    for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
      for (int stage = worker; stage < stages; stage += workers) {
        schedule.programs[worker].push_back(
            {StageId(stage), ActionKind::kForward, MicrobatchId(microbatch)});
      }
      for (int stage = stages - workers + worker; stage >= 0; stage -= workers) {
        schedule.programs[worker].push_back(
            {StageId(stage), ActionKind::kBackward, MicrobatchId(microbatch)});
      }
    }
  }
  return schedule;
}

TEST(ValidateSchedule, TakesChunksAndManyWorkers) {
  const Schedule schedule = DeepSchedule(16, 2, 32);
  EXPECT_EQ(Verdict(schedule), "valid");
  const absl::StatusOr<Schedule> lowered = InsertCommunication(schedule);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(Verdict(*lowered), "valid");
}

TEST(ValidateSchedule, ShowsALargeGridAroundTheBadCellOnly) {
  Schedule schedule = DeepSchedule(32, 1, 40);
  std::swap(schedule.programs[20][40], schedule.programs[20][41]);
  const std::string verdict = Verdict(schedule);
  EXPECT_TRUE(absl::StartsWith(verdict,
                               "worker 20 has 20B20 before 20F20, which it needs\n...\n"
                               "worker 12: ... 12F14 "))
      << verdict;
  EXPECT_TRUE(absl::StrContains(verdict, "20B19 20B20 <-- here 20F20 20F21")) << verdict;
  EXPECT_TRUE(absl::EndsWith(verdict, " ...\n...")) << verdict;
  EXPECT_LT(verdict.size(), 5000u);
}

TEST(ValidateSchedule, AcceptsAnOptimizerStepJustInTime) {
  EXPECT_EQ(Verdict("0F0 1F0 1B0 1STEP 0B0 0STEP"), "valid");
}

TEST(ValidateSchedule, NamesAnUpdateOutOfOrder) {
  EXPECT_EQ(Verdict("0F0 0F1 0B0 0UPDATE0 0B1 0UPDATE1"), "valid");
  EXPECT_EQ(Verdict("0F0 0UPDATE0 0B0"),
            "worker 0 has 0UPDATE0 before 0B0, which it needs\n"
            "worker 0: 0F0 0UPDATE0 <-- here 0B0");
  EXPECT_EQ(Verdict("0F0 0F1 0B0 0B1 0UPDATE1 0UPDATE0"),
            "worker 0 has 0UPDATE0 behind 0UPDATE1, but updates go through the microbatches in "
            "ascending order\n"
            "worker 0: 0F0 0F1 0B0 0B1 0UPDATE1 0UPDATE0 <-- here");
  EXPECT_EQ(Verdict("0F0 0F1 0B0 0UPDATE0 0B1"),
            "worker 0 has 0B1, whose gradients no UPDATE uses\n"
            "worker 0: 0F0 0F1 0B0 0UPDATE0 0B1 <-- here");
}

TEST(ValidateSchedule, NamesACompoundCellWithoutItsSecond) {
  Schedule schedule = ParsedSchedule("0F0 0B0");
  schedule.programs[0][1].pairing = Pairing::kWithNext;
  EXPECT_EQ(Verdict(schedule),
            "worker 0 has 0B0 as the first of a compound cell, but no compute action follows as "
            "its second\n"
            "worker 0: 0F0 0B0 <-- here");
}

}  // namespace
}  // namespace siphon
