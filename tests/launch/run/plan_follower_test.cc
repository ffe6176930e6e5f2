// Second choices in force: whole runs, workers as threads, with lenders that do not lend, a host
// that does not give its memory and links that are slow; held against the run without limits.

#include "launch/run/plan_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <latch>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/config/read_text_file.h"
#include "launch/plan_job/parking_region.h"
#include "launch/run/name_of_place.h"
#include "launch/run/run_worker.h"
#include "pipeline/state_swaps.h"
#include "planner/strategies/lower_memory_plan.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/parking_job.h"
#include "tests/launch/run/seated_run.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::Not;

struct TestRun {
  absl::Status status;
  std::string said;  // on standard error
  std::vector<nlohmann::json> steps;
  std::map<std::string, std::string> bits;  // of the last checkpoint
};

// At that phase, once so many steps are done.
SeatChange RefuseAt(int worker, const std::string& phase, int64_t step) {
  return [=](WorkerSeat& seat) {
    if (seat.me != WorkerId(worker)) return;
    const auto done = std::make_shared<std::atomic<int64_t>>(0);
    seat.at_progress = [done](int64_t steps, const std::string&) { done->store(steps); };
    seat.at_phase = [=](const std::string& at) -> absl::Status {
      if (at != phase || done->load() < step) return absl::OkStatus();
      return absl::ResourceExhaustedError("the test says no");
    };
  };
}

SeatChange SlowLinkOf(int worker, const std::string& place) {
  return [=](WorkerSeat& seat) {
    if (seat.me != WorkerId(worker)) return;
    seat.slowness = [=](const std::string& link) { return link == place ? 100.0 : 1.0; };
  };
}

class SecondChoices : public ParkingJob {
 protected:
  static TestRun Train(const PreparedJob& prepared, const SeatChange& meddle) {
    const SeatedRun seated = RunSeats(prepared, meddle);
    TestRun run{.said = seated.said};
    // Who still waited for the others when the first one ended knows nothing but that.
    for (const auto& end : seated.ends) {
      if (!absl::IsUnavailable(end.status())) run.status.Update(end.status());
    }
    for (const auto& end : seated.ends) run.status.Update(end.status());
    if (!run.status.ok()) return run;
    const std::string& folder = prepared.job.output.directory;
    const auto metrics = ReadTextFile(folder + "/metrics.jsonl", "metrics");
    EXPECT_TRUE(metrics.ok()) << metrics.status();
    for (const absl::string_view line : absl::StrSplit(*metrics, '\n', absl::SkipEmpty())) {
      run.steps.push_back(nlohmann::json::parse(line));
    }
    run.bits = CheckpointBits(folder + "/checkpoints/step-00000006");
    return run;
  }

  TestRun Unlimited() {
    const auto prepared = PrepareJob(Job(4), {});
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    return Train(*prepared, nullptr);
  }

  // Trains, and expects the bits of the run without limits, and capacities kept in every step.
  TestRun TrainSame(const PreparedJob& prepared, const SeatChange& meddle) {
    TestRun run = Train(prepared, meddle);
    EXPECT_TRUE(run.status.ok()) << run.status;
    ExpectSame(prepared, run);
    return run;
  }

  void ExpectSame(const PreparedJob& prepared, const TestRun& run) {
    const TestRun same = Unlimited();
    EXPECT_EQ(run.steps.size(), same.steps.size());
    for (size_t step = 0; step < std::min(run.steps.size(), same.steps.size()); ++step) {
      EXPECT_EQ(run.steps[step]["loss"], same.steps[step]["loss"]) << "step " << step + 1;
      for (const int64_t peak : run.steps[step]["peak_bytes"]) {
        EXPECT_LE(peak, prepared.job.memory.capacity[0].value) << "step " << step + 1;
      }
    }
    EXPECT_EQ(run.bits, same.bits);
  }

  PreparedJob Prepared(const JobConfig& job) {
    auto prepared = PrepareJob(job, {});
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    return *std::move(prepared);
  }
};

// The first lender of worker 0.
int LenderOf(const PreparedJob& prepared) {
  for (const auto& [place, bytes] : prepared.parking[0].bytes) {
    if (place.tier == Placement::kPeerSwap) return place.lender.value;
  }
  ADD_FAILURE() << "worker 0 parks with nobody";
  return -1;
}

int64_t BytesOut(const TestRun& run, size_t step, const char* place) {
  int64_t sum = 0;
  for (const int64_t bytes : run.steps.at(step)["swapped_out_bytes"][place]) sum += bytes;
  return sum;
}
int64_t GroupsMoved(const TestRun& run, size_t step) {
  return run.steps.at(step)["second_choice_groups"][0];
}

TEST_F(SecondChoices, AreTakenAtOnceWhereALenderDoesNotLend) {
  const PreparedJob prepared = Prepared(TightJob("d2d_swap", 92));
  const int lender = LenderOf(prepared);
  const TestRun run = TrainSame(prepared, RefuseAt(lender, kLendingPhase, 0));
  EXPECT_THAT(run.said,
              HasSubstr(absl::StrCat("worker 0: worker ", lender, " does not lend its memory: ")));
  EXPECT_THAT(run.said, testing::ContainsRegex("to the host from step 1 on"));
  EXPECT_GT(BytesOut(run, 0, "host"), 0);
  EXPECT_GT(GroupsMoved(run, 0), 0);
}

TEST_F(SecondChoices, AreTakenFromTheNextStepOnWhereALenderTakesItsMemoryBack) {
  const PreparedJob prepared = Prepared(TightJob("d2d_swap", 92));
  const int lender = LenderOf(prepared);
  const TestRun run = TrainSame(prepared, RefuseAt(lender, kLendingPhase, 2));
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

bool ParksState(const MemoryPlan& plan) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (!StateGroupsAway(plan, {}, StageId(static_cast<int>(stage))).empty()) return true;
  }
  return false;
}

// What is away between steps is carried from the lender to the host.
TEST_F(SecondChoices, TakeTrainingStateAlong) {
  JobConfig job = Job(4);
  job.model.hidden = 96;
  const TestRun unlimited = Train(Prepared(job), nullptr);
  ASSERT_TRUE(unlimited.status.ok()) << unlimited.status;
  job.memory.capacity.assign(4, Bytes(12'000'000));
  job.memory.capacity[0] = Bytes(3'700'000);  // of 4.5 million that it needs
  job.memory.strategy = "d2d_swap";
  const PreparedJob prepared = Prepared(job);
  ASSERT_TRUE(ParksState(prepared.plan.memory));
  const int lender = LenderOf(prepared);
  const TestRun run = Train(prepared, RefuseAt(lender, kLendingPhase, 2));
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_THAT(run.said, testing::ContainsRegex("does not lend its memory: [0-9]+ groups? go(es)? "
                                               "to the host from step 4 on"));
  EXPECT_GT(BytesOut(run, 5, "host"), 0);
  EXPECT_EQ(run.bits, unlimited.bits);
  for (size_t step = 0; step < unlimited.steps.size(); ++step) {
    EXPECT_EQ(run.steps.at(step)["loss"], unlimited.steps[step]["loss"]) << "step " << step + 1;
    EXPECT_LE(run.steps[step]["peak_bytes"][0], job.memory.capacity[0].value);
  }
}

// The same plan, but for its optimizer state, which is home between steps.
PreparedJob WithStateHome(PreparedJob prepared) {
  Schedule& schedule = prepared.plan.training;
  for (std::vector<Action>& program : schedule.programs) {
    std::erase_if(program, [](const Action& action) {
      return IsMemory(action.kind) ||
             (action.kind == ActionKind::kStep && action.group != kWholeStage);
    });
  }
  const SwapTiming home = {.groups_away_between_steps = 0};
  const std::vector<SwapTiming> timing(prepared.plan.memory.stages.size(), home);
  const auto lowered = LowerMemoryPlan(schedule, prepared.plan.memory, {.timing = timing});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  if (lowered.ok()) schedule = *lowered;
  return prepared;
}

// Then only its place moves, and what leaves in the next step goes to the other one. Evaluations
// and checkpoints find it where it is.
TEST_F(SecondChoices, LeaveStateThatIsHomeWhereItIs) {
  JobConfig job = Job(4);
  job.model.hidden = 96;
  const TestRun unlimited = Train(Prepared(job), nullptr);
  ASSERT_TRUE(unlimited.status.ok()) << unlimited.status;
  job.memory.capacity.assign(4, Bytes(12'000'000));
  job.memory.capacity[0] = Bytes(3'700'000);
  job.memory.strategy = "d2d_swap";
  PreparedJob prepared = WithStateHome(Prepared(job));
  prepared.job.memory.capacity[0] = Bytes(4'500'000);  // which it needs if nothing leaves
  ASSERT_FALSE(HomeGroupsOf(prepared.plan.training, prepared.plan.memory).empty());
  for (const int64_t step : {0, 2}) {
    const TestRun run = Train(prepared, RefuseAt(LenderOf(prepared), kLendingPhase, step));
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

TEST_F(SecondChoices, ComputeAgainWhatTheHostHasNoRoomFor) {
  JobConfig job = TightJob("host_swap", 92);
  const PreparedJob prepared = Prepared(job);
  const TestRun run = TrainSame(prepared, RefuseAt(0, kHostMemoryPhase, 0));
  EXPECT_THAT(run.said, testing::ContainsRegex("the host does not give the memory that is planned: "
                                               "[0-9]+ groups? (is|are) computed again from step "
                                               "1 on"));
  EXPECT_EQ(run.steps[5]["swapped_out_bytes"]["host"][0], 0);
  EXPECT_GT(run.steps[5]["recompute_seconds"][0], 0.0);
  EXPECT_GT(GroupsMoved(run, 5), 0);
}

// Training state, which nobody computes again, and no drive: lenders take it, from where it is.
TEST_F(SecondChoices, GoToLendersWhereTheHostRefusesOrIsSlow) {
  JobConfig job = Job(4);
  job.model.hidden = 96;
  const TestRun unlimited = Train(Prepared(job), nullptr);
  ASSERT_TRUE(unlimited.status.ok()) << unlimited.status;
  job.memory.capacity.assign(4, Bytes(12'000'000));
  job.memory.capacity[0] = Bytes(3'700'000);  // of 4.5 million that it needs
  job.memory.strategy = "weight_offload";
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
    const TestRun run =
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
    const TestRun run =
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
    const TestRun run = Train(prepared, RefuseAt(lender, kLendingPhase, step));
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
  const TestRun run = Train(prepared, nullptr);
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
  const TestRun run = Train(prepared, [&](WorkerSeat& seat) {
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

// Optimizer steps on the host have no other way, and say so before the first step.
TEST_F(SecondChoices, AreNotThereForStepsOnTheHost) {
  const PreparedJob prepared = Prepared(TightJob("optimizer_offload", 95));
  ASSERT_GT(prepared.host_steps[0], Bytes(0));
  TrainSame(prepared, nullptr);
  const TestRun run = Train(prepared, RefuseAt(0, kHostMemoryPhase, 0));
  EXPECT_TRUE(absl::IsResourceExhausted(run.status)) << run.status;
  EXPECT_THAT(std::string(run.status.message()), HasSubstr("worker 0: the test says no"));
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
  const TestRun run = TrainSame(prepared, SlowLinkOf(0, lender));
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
