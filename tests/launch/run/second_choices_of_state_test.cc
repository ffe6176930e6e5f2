// Second choices of training state that is away between steps, or leaves it, or steps on the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "launch/plan_job/parking_region.h"
#include "pipeline/state_swaps.h"
#include "planner/home_groups.h"
#include "planner/second_choices/take_second_choices.h"
#include "tests/launch/run/second_choice_runs.h"

namespace siphon {
namespace {

using testing::HasSubstr;

class SecondChoicesOfState : public SecondChoices {};

// What is away between steps is carried from the lender to the host.
TEST_F(SecondChoicesOfState, TakeTrainingStateAlong) {
  const SecondChoiceRun unlimited = UnlimitedWide();
  ASSERT_TRUE(unlimited.status.ok());
  const JobConfig job = TightWideJob("d2d_swap");
  const PreparedJob prepared = Prepared(job);
  ASSERT_TRUE(ParksState(prepared.plan.memory));
  const int lender = LenderOf(prepared);
  const SecondChoiceRun run = Train(prepared, RefuseAt(lender, kLendingPhase, 2));
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_THAT(run.said, testing::ContainsRegex("does not lend its memory: [0-9]+ groups? go(es)? "
                                               "to the host from step 4 on"));
  EXPECT_GT(BytesOut(run, 5, "host"), 0);
  ExpectSameWithin(job.memory.capacity[0], run, unlimited);
}

// The same plan, but for its optimizer state, which is home between steps.
PreparedJob WithStateHome(PreparedJob prepared) {
  const SwapTiming home = {.groups_away_between_steps = 0};
  LowerAnew(prepared, std::vector<SwapTiming>(prepared.plan.memory.stages.size(), home));
  return prepared;
}

// Then only its place moves, and what leaves in the next step goes to the other one. Evaluations
// and checkpoints find it where it is.
TEST_F(SecondChoicesOfState, LeaveStateThatIsHomeWhereItIs) {
  const SecondChoiceRun unlimited = UnlimitedWide();
  ASSERT_TRUE(unlimited.status.ok());
  const JobConfig job = TightWideJob("d2d_swap");
  PreparedJob prepared = WithStateHome(Prepared(job));
  prepared.job.memory.capacity[0] = Bytes(4'500'000);  // which it needs if nothing leaves
  ASSERT_FALSE(HomeGroupsOf(prepared.plan.training, prepared.plan.memory).empty());
  for (const int64_t step : {0, 2}) {
    const SecondChoiceRun run = Train(prepared, RefuseAt(LenderOf(prepared), kLendingPhase, step));
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_THAT(run.said, HasSubstr("does not lend its memory"));
    EXPECT_GT(BytesOut(run, 5, "host"), 0);
    EXPECT_EQ(run.bits, unlimited.bits);
    for (size_t index = 0; index < unlimited.steps.size(); ++index) {
      EXPECT_EQ(run.steps.at(index)["loss"], unlimited.steps[index]["loss"]) << index;
      EXPECT_LT(run.steps[index]["peak_bytes"][0], unlimited.steps[index]["peak_bytes"][0])
          << index;
    }
  }
}

// Optimizer steps on the host go on in a file, where the job has a drive.
TEST_F(SecondChoicesOfState, OfStepsOnTheHostAreOnTheDrive) {
  JobConfig job = TightJob("optimizer_offload", 95);
  job.memory.nvme_directory = folder_ + "/drive";
  const PreparedJob prepared = Prepared(job);
  ASSERT_GT(prepared.host_steps[0], Bytes(0));
  const SecondChoiceRun run = TrainSame(prepared, RefuseAt(0, kHostMemoryPhase, 0));
  EXPECT_THAT(run.said, testing::ContainsRegex("worker 0: the host does not give the memory that "
                                               "is planned: [0-9]+ groups? go(es)? to the drives "
                                               "from step 1 on"));
  EXPECT_GT(GroupsMoved(run, 0), 0);
  EXPECT_TRUE(std::filesystem::is_empty(job.memory.nvme_directory));
  // Nor does the drive.
  const SecondChoiceRun refused = Train(prepared, [](WorkerSeat& seat) {
    if (seat.me != WorkerId(0)) return;
    seat.at_phase = [](const std::string& at) -> absl::Status {
      if (at != kHostMemoryPhase && at != kDrivePhase) return absl::OkStatus();
      return absl::ResourceExhaustedError(at + ": the test says no");
    };
  });
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status)) << refused.status;
  EXPECT_THAT(std::string(refused.status.message()),
              HasSubstr(std::string(kDrivePhase) + ": the test says no"));
}

// With parameters and gradients that are parked there for it.
TEST_F(SecondChoicesOfState, OfWhatIsParkedForStepsOnTheHostAreOnTheDrive) {
  const SecondChoiceRun unlimited = UnlimitedWide();
  ASSERT_TRUE(unlimited.status.ok());
  JobConfig job = TightWideJob("l2l");
  job.memory.nvme_directory = folder_ + "/drive";
  PreparedJob prepared = Prepared(job);
  int stays = 0, parked = 0;  // of worker 0
  for (StagePlan& stage : prepared.plan.memory.stages) {
    const bool first = &stage == &prepared.plan.memory.stages[0];
    const bool away = absl::c_any_of(stage.groups, [](const PlannedGroup& planned) {
      return planned.group.kind == GroupKind::kOptimizerState;
    });
    if (away) stage.update = UpdatePlace::kHost;
    for (PlannedGroup& planned : stage.groups) {
      if (!StaysForHostStep(stage, planned)) continue;
      planned.choice.second_choice = Placement::kNvmeSwap;
      stays += first ? 1 : 0;
      parked += first && planned.group.kind != GroupKind::kOptimizerState ? 1 : 0;
    }
  }
  ASSERT_GT(parked, 0);
  LowerAnew(prepared, {});
  prepared.parking = LayOutParking(prepared.plan.memory, prepared.plan.training).value();
  prepared.host_steps.assign(4, Bytes(10'000'000));  // more than enough
  const SecondChoiceRun run = Train(prepared, RefuseAt(0, kHostMemoryPhase, 0));
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_THAT(run.said, HasSubstr("to the drives from step 1 on"));
  EXPECT_EQ(GroupsMoved(run, 0), stays);
  EXPECT_GT(BytesOut(run, 5, "host"), 0);  // by way of the host's addresses, as before
  ExpectSameWithin(job.memory.capacity[0], run, unlimited);
}

// Where it has none they have no other way, and say so before the first step.
TEST_F(SecondChoicesOfState, AreNotThereForStepsOnTheHostWithoutADrive) {
  const PreparedJob prepared = Prepared(TightJob("optimizer_offload", 95));
  ASSERT_GT(prepared.host_steps[0], Bytes(0));
  TrainSame(prepared, nullptr);
  const SecondChoiceRun run = Train(prepared, RefuseAt(0, kHostMemoryPhase, 0));
  EXPECT_TRUE(absl::IsResourceExhausted(run.status)) << run.status;
  EXPECT_THAT(std::string(run.status.message()), HasSubstr("worker 0: the test says no"));
}

// State that is with the host and steps on the device, beside a layer that steps there.
TEST_F(SecondChoicesOfState, AreThereForWhatStreamsBesideTheHostsStep) {
  const SecondChoiceRun unlimited = UnlimitedWide();
  ASSERT_TRUE(unlimited.status.ok());
  JobConfig job = TightWideJob("weight_offload");
  job.topology.name = "dgx1_v100";
  job.topology.throttle = "0.01";
  PreparedJob prepared = Prepared(job);
  ASSERT_FALSE(prepared.second.stripes.empty());
  // The first layer whose state is away steps on the host, the others stream.
  StagePlan& stage = prepared.plan.memory.stages[0];
  stage.update = UpdatePlace::kHost;
  int away = 0;
  for (auto& [group, choice] : stage.groups) {
    if (group.kind != GroupKind::kOptimizerState || !IsSwap(choice.placement)) continue;
    choice.steps_on_device = away++ > 0;
    if (!choice.steps_on_device) choice.second_choice = Placement::kKeep;
  }
  ASSERT_GT(away, 1);
  LowerAnew(prepared, {});
  prepared.parking = LayOutParking(prepared.plan.memory, prepared.plan.training).value();
  prepared.host_steps.assign(4, Bytes(0));
  prepared.host_steps[0] = Bytes(10'000'000);  // more than enough
  const SecondChoiceRun run = Train(prepared, SlowLinkOf(0, "the host"));
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_THAT(run.said, testing::ContainsRegex(
                            "worker 0: .*[0-9]+ groups? go(es)? to other workers from step "));
  EXPECT_EQ(BytesOut(run, 0, "d2d"), 0);
  EXPECT_GT(BytesOut(run, 5, "d2d"), 0);
  ExpectSameWithin(job.memory.capacity[0], run, unlimited);
}

}  // namespace
}  // namespace siphon
