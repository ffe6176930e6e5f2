// Second choices in force: whole runs, workers as threads, with lenders that do not lend, a host
// that does not give its memory and links that are slow; held against the run without limits.

#include "launch/run/follow/plan_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <latch>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/parking_region.h"
#include "launch/run/job/name_of_place.h"
#include "tests/launch/run/second_choice_runs.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(SecondChoices, AreTakenAtOnceWhereALenderDoesNotLend) {
  const PreparedJob prepared = Prepared(TightJob("d2d_swap", 92));
  const int lender = LenderOf(prepared);
  const SecondChoiceRun run = TrainSame(prepared, RefuseAt(lender, kLendingPhase, 0));
  EXPECT_THAT(run.said,
              HasSubstr(absl::StrCat("worker 0: worker ", lender, " does not lend its memory: ")));
  EXPECT_THAT(run.said, testing::ContainsRegex("to the host from step 1 on"));
  EXPECT_GT(BytesOut(run, 0, "host"), 0);
  EXPECT_GT(GroupsMoved(run, 0), 0);
}

TEST_F(SecondChoices, AreTakenFromTheNextStepOnWhereALenderTakesItsMemoryBack) {
  const PreparedJob prepared = Prepared(TightJob("d2d_swap", 92));
  const int lender = LenderOf(prepared);
  const SecondChoiceRun run = TrainSame(prepared, RefuseAt(lender, kLendingPhase, 2));
  EXPECT_THAT(run.said, testing::ContainsRegex("does not lend its memory: [0-9]+ groups? go(es)? "
                                               "to the host from step 4 on"));
  EXPECT_EQ(BytesOut(run, 2, "host"), 0);
  EXPECT_EQ(GroupsMoved(run, 2), 0);
  EXPECT_GT(BytesOut(run, 3, "host"), 0);
  EXPECT_GT(GroupsMoved(run, 3), 0);
  EXPECT_EQ(BytesOut(run, 3, "host") + BytesOut(run, 3, "d2d"), BytesOut(run, 2, "d2d"));
  // What was lent is off the lender's books.
  const auto peak = [&](size_t step) -> int64_t { return run.steps[step]["peak_bytes"][lender]; };
  EXPECT_LT(peak(5), peak(2));
}

TEST_F(SecondChoices, ComputeAgainWhatTheHostHasNoRoomFor) {
  JobConfig job = TightJob("host_swap", 92);
  const PreparedJob prepared = Prepared(job);
  const SecondChoiceRun run = TrainSame(prepared, RefuseAt(0, kHostMemoryPhase, 0));
  EXPECT_THAT(run.said, testing::ContainsRegex("the host does not give the memory that is planned: "
                                               "[0-9]+ groups? (is|are) computed again from step "
                                               "1 on"));
  EXPECT_EQ(run.steps[5]["swapped_out_bytes"]["host"][0], 0);
  EXPECT_GT(run.steps[5]["recompute_seconds"][0], 0.0);
  EXPECT_GT(GroupsMoved(run, 5), 0);
}

// Training state, which nobody computes again, and no drive: lenders take it, from where it is.
TEST_F(SecondChoices, GoToLendersWhereTheHostRefusesOrIsSlow) {
  const SecondChoiceRun unlimited = UnlimitedWide();
  ASSERT_TRUE(unlimited.status.ok());
  JobConfig job = TightWideJob("weight_offload");
  for (const char* throttle : {"none", "0.01"}) {
    SCOPED_TRACE(throttle);
    const bool slow = std::string(throttle) != "none";
    job.topology.name = slow ? "dgx1_v100" : "";
    job.topology.throttle = throttle;
    const PreparedJob prepared = Prepared(job);
    ASSERT_TRUE(ParksState(prepared.plan.memory));
    ASSERT_FALSE(prepared.second.stripes.empty());
    EXPECT_GT(LayOutShared(prepared).lent, Bytes(0));
    for (int worker = 0; worker < 4; ++worker) {
      EXPECT_EQ(LentByWorker(prepared, WorkerId(worker)), Bytes(0))
          << "nothing is lent by the plan";
    }
    const SecondChoiceRun run =
        Train(prepared, slow ? SlowLinkOf(0, "the host") : RefuseAt(0, kHostMemoryPhase, 0));
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_THAT(run.said, testing::ContainsRegex("worker 0: .*[0-9]+ groups? go(es)? to other "
                                                 "workers from step "));
    EXPECT_GT(BytesOut(run, 5, "d2d"), 0);
    EXPECT_EQ(BytesOut(run, 5, "host"), 0);
    EXPECT_EQ(run.bits, unlimited.bits);
    for (size_t step = 0; step < unlimited.steps.size(); ++step) {
      EXPECT_EQ(run.steps.at(step)["loss"], unlimited.steps[step]["loss"]) << "step " << step + 1;
      for (size_t worker = 0; worker < 4; ++worker) {
        EXPECT_LE(run.steps[step]["peak_bytes"][worker], job.memory.capacity[worker].value);
      }
    }
  }
}

// Everybody refuses at once, which is what second choices are budgeted for. What has none says so.
class SecondChoicesOfSchedules : public SecondChoices,
                                 public testing::WithParamInterface<const char*> {
 protected:
  void RefuseEverywhere(const char* strategy, const std::string& phase) {
    SCOPED_TRACE(strategy);
    JobConfig job = TightJob(strategy, 92);
    job.pipeline.schedule = GetParam();
    const auto prepared = PrepareJob(job, {});
    if (!prepared.ok()) return;  // this schedule needs more
    const SecondChoiceRun run =
        Train(*prepared, [&](WorkerSeat& seat) { RefuseAt(seat.me.value, phase, 0)(seat); });
    if (!run.status.ok()) {
      EXPECT_THAT(std::string(run.status.message()), HasSubstr("no second choice"));
      return;
    }
    ExpectSame(*prepared, run);
    trained_ += 1;
  }

  int trained_ = 0;
};

TEST_P(SecondChoicesOfSchedules, KeepCapacitiesAndBits) {
  RefuseEverywhere("d2d_swap", kLendingPhase);
  RefuseEverywhere("host_swap", kHostMemoryPhase);
  EXPECT_GT(trained_, 0);
}

INSTANTIATE_TEST_SUITE_P(Live, SecondChoicesOfSchedules, testing::Values("1f1b", "gpipe", "dapple"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(SecondChoices, EndTheRunWhereThereAreNone) {
  PreparedJob prepared = Prepared(TightJob("d2d_swap", 92));
  const int lender = LenderOf(prepared);
  for (StagePlan& stage : prepared.plan.memory.stages) {
    for (PlannedGroup& planned : stage.groups) planned.choice.second_choice = Placement::kKeep;
  }
  for (const int64_t step : {0, 2}) {
    const SecondChoiceRun run = Train(prepared, RefuseAt(lender, kLendingPhase, step));
    EXPECT_TRUE(absl::IsResourceExhausted(run.status)) << run.status;
    EXPECT_THAT(std::string(run.status.message()),
                HasSubstr(absl::StrCat("worker ", lender, ": the test says no; activations of ")));
    EXPECT_EQ(CulpritOf(run.status), lender);
  }
}

TEST_F(SecondChoices, AreNotForALenderThatHasLessThanItIsToLend) {
  PreparedJob prepared = Prepared(TightJob("d2d_swap", 92));
  const int lender = LenderOf(prepared);
  for (StagePlan& stage : prepared.plan.memory.stages) {
    for (PlannedGroup& planned : stage.groups) planned.choice.second_choice = Placement::kKeep;
  }
  const Bytes lent = LentByWorker(prepared, WorkerId(lender));
  prepared.job.memory.capacity.assign(4, prepared.job.memory.capacity[0]);
  prepared.job.memory.capacity[lender] = lent - Bytes(1);
  const SecondChoiceRun run = Train(prepared, nullptr);
  EXPECT_TRUE(absl::IsResourceExhausted(run.status)) << run.status;
  EXPECT_THAT(std::string(run.status.message()),
              HasSubstr(absl::StrCat("worker ", lender,
                                     ": tensors of other workers, which are parked here, need ",
                                     FormatBytes(lent))));
}

// Before anybody parks: so that it lies where its lender is, and is there at all.
TEST_F(SecondChoices, AreForMemoryThatItsLenderHasTouchedFirst) {
  const PreparedJob prepared = Prepared(TightJob("d2d_swap", 92));
  int looked = 0;
  std::latch filled(1);
  const SecondChoiceRun run = Train(prepared, [&](WorkerSeat& seat) {
    const absl::Span<std::byte> lent =
        seat.lent.first(static_cast<size_t>(LayOutShared(prepared).lent.value));
    if (seat.me != WorkerId(0)) return filled.wait();
    std::memset(lent.data(), 0xab, lent.size());
    filled.count_down();
    seat.at_phase = [&looked, &prepared, lent](const std::string& phase) {
      if (phase != "reading the checkpoint") return absl::OkStatus();
      for (const ParkingRegion::Part& part : LayOutRegion(prepared.parking).parts) {
        const absl::Span<std::byte> memory = lent.subspan(static_cast<size_t>(part.offset.value),
                                                          static_cast<size_t>(part.bytes.value));
        EXPECT_TRUE(std::all_of(memory.begin(), memory.end(),
                                [](std::byte byte) { return byte == std::byte{0}; }));
        ++looked;
      }
      return absl::OkStatus();
    };
  });
  EXPECT_TRUE(run.status.ok()) << run.status;
  EXPECT_GT(looked, 0);
}

// Held to a thousandth of a DGX-1's rates, copies take milliseconds; a slow one a tenth of a
// second.
TEST_F(SecondChoices, AreTakenAfterSomeStepsWhereALinkIsSlow) {
  JobConfig job = TightJob("d2d_swap", 92);
  job.topology.name = "dgx1_v100";
  job.topology.throttle = "0.001";
  const PreparedJob prepared = Prepared(job);
  const int device = LenderOf(prepared);
  const std::string lender =
      NameOfPlace(prepared.plan_text.mapping, {Placement::kPeerSwap, DeviceId(device)});
  const SecondChoiceRun run = TrainSame(prepared, SlowLinkOf(0, lender));
  const std::string step = absl::StrCat(LinkWatch::kSteps + 1);
  EXPECT_THAT(run.said,
              testing::ContainsRegex(absl::StrCat("worker 0: the link to ", lender,
                                                  " is [0-9.]+x slower than planned: [0-9]+ "
                                                  "groups? (go|goes|is|are) [a-z ]+from step ",
                                                  step, " on")));
  EXPECT_EQ(GroupsMoved(run, LinkWatch::kSteps - 1), 0);
  EXPECT_GT(GroupsMoved(run, LinkWatch::kSteps), 0);
}

TEST(PlaceNumber, IsAbove0AndLeadsBack) {
  for (const ParkingPlace& place : {ParkingPlace{Placement::kHostSwap, DeviceId(0)},
                                    {Placement::kNvmeSwap, DeviceId(0)},
                                    {Placement::kPeerSwap, DeviceId(0)},
                                    {Placement::kPeerSwap, DeviceId(15)}}) {
    EXPECT_GT(PlaceNumber(place), 0);
    EXPECT_EQ(PlaceOfNumber(PlaceNumber(place)), place);
  }
}

}  // namespace
}  // namespace siphon
