// Plans that a run makes again, by what its first steps took: whole runs, workers as threads, with
// a profile or a link that is wrong on purpose; held against the run without limits.

#include "launch/run/follow/replan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/config/read_text_file.h"
#include "launch/output/text_file.h"
#include "launch/profile/profile_file.h"
#include "launch/run/follow/plan_follower.h"
#include "launch/run/job/name_of_place.h"
#include "launch/run/layer_profile/profile_layers.h"
#include "launch/run/parking/parking_routes.h"
#include "launch/run/parking/shared_by_threads.h"
#include "launch/run/run_worker.h"
#include "pipeline/carried_state.h"
#include "pipeline/transport/in_process_transport.h"
#include "planner/plan_text.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/parking_job.h"
#include "tests/launch/run/seated_run.h"

namespace siphon {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Two more than decide, and as many behind the move as it takes to see its effect.
constexpr int64_t kSteps = 9;
constexpr int64_t kStepsToTheEffect = 15;

struct ReplannedRun {
  std::string said;  // on standard error
  std::vector<nlohmann::json> steps;
  std::map<std::string, std::string> bits;  // of the last checkpoint
};

class ReplanTest : public ParkingJob {
 protected:
  JobConfig LongerJob(int64_t steps) const {
    JobConfig job = Job(4);
    job.model.hidden = 96;
    job.train.steps = steps;
    job.checkpoint.every_steps = steps;
    return job;
  }
  // On links that make copies take milliseconds, which layers do not.
  JobConfig OnSlowLinks(Bytes capacity_of_worker_0) const {
    return OnLinksOf(/*throttle=*/"0.0004", capacity_of_worker_0, kSteps);
  }
  // Tens of milliseconds: what they cost is far more than what steps of a busy machine vary by.
  JobConfig OnVerySlowLinks(Bytes capacity_of_worker_0, int64_t steps) const {
    return OnLinksOf(/*throttle=*/"0.0001", capacity_of_worker_0, steps);
  }
  JobConfig OnLinksOf(const std::string& throttle, Bytes capacity_of_worker_0,
                      int64_t steps) const {
    JobConfig job = LongerJob(steps);
    job.topology.name = "dgx1_v100";
    job.topology.throttle = throttle;
    job.memory.capacity.assign(4, Bytes(12'000'000));
    job.memory.capacity[0] = capacity_of_worker_0;
    return job;
  }

  // The job's layers as measured, but for their times: so long that every copy is hidden.
  void UseSlowProfile(JobConfig& job) const {
    const auto prepared = PrepareJob(LongerJob(kSteps), {});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    auto profile = ProfileLayers(*prepared, {.warm_up = 0, .repetitions = 1}, {});
    ASSERT_TRUE(profile.ok()) << profile.status();
    for (LayerProfile& layer : profile->model.layers) {
      layer.forward = Nanos(80'000'000);
      layer.recompute = layer.forward;
      layer.input_backward = layer.forward;
      layer.weight_backward = layer.forward;
      layer.whole_backward = layer.forward * 2;
      layer.optimizer = Nanos(1'000'000);
    }
    profile->transport = {};
    profile->cores_together = {};
    std::filesystem::create_directories(folder_);
    job.pipeline.profile = folder_ + "/slow.yaml";
    ASSERT_TRUE(WriteTextFile(job.pipeline.profile, WriteProfile(*profile)).ok());
  }

  static PreparedJob Prepared(const JobConfig& job) {
    auto prepared = PrepareJob(job, {});
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    return *std::move(prepared);
  }

  static ReplannedRun Train(const PreparedJob& prepared, const SeatChange& change) {
    const SeatedRun seated = RunSeats(prepared, change);
    ReplannedRun run{.said = seated.said};
    for (const auto& end : seated.ends) EXPECT_TRUE(end.ok()) << end.status();
    if (!seated.ends[0].ok()) return run;
    const auto metrics = ReadTextFile(prepared.job.output.directory + "/metrics.jsonl", "metrics");
    EXPECT_TRUE(metrics.ok()) << metrics.status();
    for (const absl::string_view line : absl::StrSplit(*metrics, '\n', absl::SkipEmpty())) {
      run.steps.push_back(nlohmann::json::parse(line));
    }
    run.bits = CheckpointBits(seated.ends[0]->last_checkpoint);
    return run;
  }

  // Trains, and expects the bits of the run without limits, and capacities kept in every step.
  ReplannedRun TrainSame(const PreparedJob& prepared, const SeatChange& change = nullptr) {
    const ReplannedRun unlimited = Train(Prepared(LongerJob(prepared.job.train.steps)), nullptr);
    ReplannedRun run = Train(prepared, change);
    EXPECT_EQ(run.steps.size(), unlimited.steps.size());
    for (size_t step = 0; step < std::min(run.steps.size(), unlimited.steps.size()); ++step) {
      EXPECT_EQ(run.steps[step]["loss"], unlimited.steps[step]["loss"]) << "step " << step + 1;
      for (size_t worker = 0; worker < 4; ++worker) {
        EXPECT_LE(run.steps[step]["peak_bytes"][worker].get<int64_t>(),
                  prepared.job.memory.capacity[worker].value)
            << "worker " << worker << " in step " << step + 1;
      }
    }
    EXPECT_EQ(run.bits, unlimited.bits);
    return run;
  }

  PlanText NewPlan() const {
    const auto text = ReadTextFile(folder_ + "/replanned.txt", "plan");
    EXPECT_TRUE(text.ok()) << text.status();
    const auto plan = ParsePlanText(text.value_or(""));
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.value_or(PlanText());
  }
};

// Bytes that left workers in the step after so many.
int64_t MovedOut(const ReplannedRun& run, size_t step) {
  int64_t sum = 0;
  for (const char* place : {"d2d", "host"}) {
    for (const int64_t bytes : run.steps.at(step)["swapped_out_bytes"][place]) sum += bytes;
  }
  return sum;
}

TEST_F(ReplanTest, MovesToWhatGainsByWhatStepsTook) {
  JobConfig job = OnVerySlowLinks(Bytes(4'200'000), kStepsToTheEffect);
  UseSlowProfile(job);
  const PreparedJob prepared = Prepared(job);
  const ReplannedRun run = TrainSame(prepared);
  EXPECT_THAT(run.said, ContainsRegex("after step 7: re-planned in [^:]*: predicted [^ ]* ms "
                                      "instead of [^ ]* ms a step \\(measured [^ ]* ms\\); moving "
                                      "took "));
  EXPECT_THAT(run.said, ContainsRegex("re-planned, steps take [^,]* instead of [^,]*, predicted "));
  ASSERT_EQ(run.steps.size(), static_cast<size_t>(kStepsToTheEffect));
  EXPECT_EQ(run.steps[6]["replans"], 0);
  EXPECT_EQ(run.steps[7]["replans"], 1);
  // Copies that the profile's layers would have hidden give way to layers that are computed again.
  EXPECT_GT(MovedOut(run, 6), 0);
  EXPECT_LT(MovedOut(run, 7), MovedOut(run, 6));
  EXPECT_EQ(run.steps[6]["recompute_seconds"][0], 0.0);
  EXPECT_GT(run.steps[7]["recompute_seconds"][0], 0.0);
  const PlanText plan = NewPlan();
  EXPECT_EQ(plan.mapping, prepared.plan_text.mapping);
  EXPECT_NE(plan.memory, prepared.plan_text.memory);
  EXPECT_LT(plan.predicted.step_time, prepared.plan_text.predicted.step_time);
  const auto report = ReadTextFile(folder_ + "/report.html", "report");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(*report, HasSubstr("re-planned in "));
}

TEST_F(ReplanTest, DoesNotWhereItIsToldNotTo) {
  JobConfig job = OnVerySlowLinks(Bytes(4'200'000), kSteps);
  UseSlowProfile(job);
  job.memory.replan = false;
  const ReplannedRun run = TrainSame(Prepared(job));
  EXPECT_THAT(run.said, Not(HasSubstr("planned")));
  EXPECT_THAT(run.said, Not(HasSubstr("the plan stays")));
  EXPECT_EQ(run.steps.back()["replans"], 0);
  EXPECT_EQ(MovedOut(run, 8), MovedOut(run, 6));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/replanned.txt"));
}

// State whose optimizer step was on the host comes along too.
TEST_F(ReplanTest, LeavesAPlanThatStepsOnTheHost) {
  JobConfig job = OnSlowLinks(Bytes(3'000'000));
  UseSlowProfile(job);
  const PreparedJob prepared = Prepared(job);
  ASSERT_FALSE(StagesSteppedOnHost(prepared.plan.memory).empty());
  const ReplannedRun run = TrainSame(prepared);
  EXPECT_THAT(run.said, HasSubstr("after step 7: re-planned in "));
  EXPECT_EQ(run.steps.back()["replans"], 1);
  EXPECT_NE(NewPlan().memory, prepared.plan_text.memory);
}

// The first lender of worker 0.
ParkingPlace LenderOf(const PreparedJob& prepared) {
  for (const auto& [place, bytes] : prepared.parking[0].bytes) {
    if (place.tier == Placement::kPeerSwap) return place;
  }
  ADD_FAILURE() << "worker 0 parks with nobody";
  return {};
}

// Slower than planned, but not so slow that second choices are taken.
TEST_F(ReplanTest, CarriesTrainingStateToOtherLendersWhereALinkIsSlow) {
  JobConfig job = OnSlowLinks(Bytes(4'000'000));
  job.memory.strategy = "d2d_swap";
  const PreparedJob prepared = Prepared(job);
  ASSERT_FALSE(StateAway(prepared.plan.memory, prepared.plan.training).empty());
  const ParkingPlace slow = LenderOf(prepared);
  const std::string name = NameOfPlace(prepared.plan_text.mapping, slow);
  const ReplannedRun run = TrainSame(prepared, [&](WorkerSeat& seat) {
    if (seat.me != WorkerId(0)) return;
    seat.slowness = [&](const std::string& link) { return link == name ? 3.5 : 1.0; };
  });
  EXPECT_THAT(run.said, HasSubstr("after step 7: re-planned in "));
  const auto bytes_there = [&](const MemoryPlan& plan) {
    int64_t bytes = 0;
    for (const PlannedGroup& planned : plan.stages[0].groups) {
      for (const Stripe& stripe : planned.choice.stripes) {
        if (stripe.lender == slow.lender) bytes += stripe.bytes.value;
      }
    }
    return bytes;
  };
  EXPECT_LT(bytes_there(NewPlan().memory), bytes_there(prepared.plan.memory));
}

// What a plan needs may not be there any more when it is to be followed.
TEST_F(ReplanTest, StaysWithItsPlanWhereTheNewOneGetsNoMemory) {
  JobConfig job = OnSlowLinks(Bytes(4'000'000));
  job.memory.strategy = "d2d_swap";
  PreparedJob prepared = Prepared(job);
  const std::string name = NameOfPlace(prepared.plan_text.mapping, LenderOf(prepared));
  const ReplannedRun run = TrainSame(prepared, [&](WorkerSeat& seat) {
    if (seat.me == WorkerId(0)) {
      seat.slowness = [&](const std::string& link) { return link == name ? 3.5 : 1.0; };
    }
    // Nobody lends, once.
    const auto moves = std::make_shared<std::atomic<int>>(0);
    seat.at_phase = [=](const std::string& phase) -> absl::Status {
      if (phase == kMovingPhase) moves->store(1);
      if (phase != kLendingPhase || moves->exchange(0) == 0) return absl::OkStatus();
      return absl::ResourceExhaustedError("the test says no");
    };
  });
  EXPECT_THAT(run.said, testing::AnyOf(HasSubstr("the plan stays after all: "),
                                       HasSubstr("does not lend its memory: ")));
}

// From a job without limits, where nobody parks, to a plan that lends, and back.
TEST_F(ReplanTest, FollowsAPlanWhoseLendersShareMoreThanTheOneBefore) {
  PreparedJob kept = Prepared(LongerJob(kSteps));
  JobConfig job = OnSlowLinks(Bytes(4'000'000));
  job.memory.strategy = "d2d_swap";
  const PreparedJob lending = Prepared(job);
  kept.plan_text.mapping = lending.plan_text.mapping;  // workers stay on their devices
  const auto transports = MakeInProcessTransports(4, [] { return absl::OkStatus(); });
  SharedByThreads shared(4);
  std::vector<std::byte*> regions(4);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      const WorkerId me(worker);
      WorkerSeat seat{.me = me, .transport = transports[worker].get()};
      Coordinator coordinator(seat.transport, me, 4);
      SeatMemory memory(kept.job, seat);
      PlanFollower follower(kept, seat, memory, coordinator);
      ASSERT_TRUE(follower.TakeRoom().ok());
      EXPECT_EQ(follower.engine(), nullptr);
      const auto refused = follower.Prepare(lending.plan_text);
      EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
      seat.more_shared = [&](Bytes bytes) { return shared.More(me, bytes); };
      auto next = follower.Prepare(lending.plan_text);
      ASSERT_TRUE(next.ok()) << next.status();
      EXPECT_EQ(next->plan.parking, lending.parking);
      regions[worker] = next->region.lent.data();
      const auto moved = follower.MoveTo(*std::move(next), /*next_step=*/8);
      ASSERT_TRUE(moved.ok()) << moved.status();
      EXPECT_EQ(*moved, PlanInForceIs::kNext);
      EXPECT_EQ(follower.engine() == nullptr, lending.parking[worker].bytes.empty());
      EXPECT_EQ(follower.plan().schedule, lending.plan.training);
      EXPECT_EQ(memory.books().used(), LentByWorker(lending, me));
      auto before = follower.Prepare(kept.plan_text);
      ASSERT_TRUE(before.ok()) << before.status();
      ASSERT_TRUE(follower.MoveTo(*std::move(before), /*next_step=*/9).ok());
      EXPECT_EQ(follower.engine(), nullptr);
      EXPECT_EQ(memory.books().used(), Bytes(0));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(regions[0], nullptr);
  EXPECT_EQ(regions, std::vector<std::byte*>(4, regions[0]));
}

TEST(GainsEnough, IsMoreThanFivePercentOfAStep) {
  EXPECT_FALSE(GainsEnough(Nanos(100), Nanos(95), Nanos(100)));
  EXPECT_TRUE(GainsEnough(Nanos(100), Nanos(94), Nanos(100)));
  EXPECT_FALSE(GainsEnough(Nanos(100), Nanos(101), Nanos(100)));
  // Six of a measured step of 120 are its twentieth.
  EXPECT_FALSE(GainsEnough(Nanos(120), Nanos(114), Nanos(120)));
  EXPECT_TRUE(GainsEnough(Nanos(120), Nanos(113), Nanos(120)));
}

TEST(GainsEnough, IsMoreThanThePredictionIsOff) {
  EXPECT_FALSE(GainsEnough(Nanos(100), Nanos(80), Nanos(120)));
  EXPECT_TRUE(GainsEnough(Nanos(100), Nanos(79), Nanos(120)));
  EXPECT_FALSE(GainsEnough(Nanos(100), Nanos(80), Nanos(80)));
  EXPECT_TRUE(GainsEnough(Nanos(100), Nanos(79), Nanos(80)));
}

TEST(ReplanText, SaysWhatWasDecidedAndWhy) {
  ReplanStudy study{.now = Nanos(1'450'000'000), .kept = Nanos(1'400'000'000)};
  EXPECT_EQ(ReplanText(study, Nanos(1'440'000'000), Nanos(300'000'000)),
            "the plan stays: even with everything kept, predicted 1.40 s instead of 1.45 s a step "
            "(measured 1.44 s)");
  study.best = Nanos(1'430'000'000);
  EXPECT_EQ(ReplanText(study, Nanos(1'440'000'000), Nanos(300'000'000)),
            "the plan stays: planned again in 300 ms, predicted 1.43 s instead of 1.45 s a step "
            "(measured 1.44 s)");
  study.best = Nanos(1'210'000'000);
  study.plan = PlanText();
  EXPECT_EQ(ReplanText(study, Nanos(1'440'000'000), Nanos(300'000'000)),
            "re-planned in 300 ms: predicted 1.21 s instead of 1.45 s a step (measured 1.44 s)");
}

// Devices 0 and 1 behind one switch, a link between them.
TEST(PaceOfLink, IsOneBetweenTheWholeRateAndItsShare) {
  Topology topology;
  topology.devices.resize(2);
  topology.links = {{.from = DeviceId(0), .to = DeviceId(1), .rate = BytesPerSecond(20)},
                    {.from = DeviceId(1), .to = DeviceId(0), .rate = BytesPerSecond(20)}};
  topology.switches = {{.devices = {DeviceId(0), DeviceId(1)},
                        .to_host = BytesPerSecond(10),
                        .from_host = BytesPerSecond(20)}};
  const TopologyWays ways(topology);
  const auto pace = [&](ParkingPlace place, int64_t bytes, int64_t milliseconds) {
    const CopyLinkUse use{
        .copies = 1, .bytes = Bytes(bytes), .time = Nanos(milliseconds * 1'000'000)};
    return PaceOfLink(ways, DeviceId(0), {place, use}, /*lenders=*/1);
  };
  const ParkingPlace lender{Placement::kPeerSwap, DeviceId(1)};
  EXPECT_DOUBLE_EQ(pace(lender, 40, 2000), 1);
  EXPECT_DOUBLE_EQ(pace(lender, 40, 6000), 3);
  EXPECT_DOUBLE_EQ(pace(lender, 40, 1000), 0.5);
  // Of the slower direction the one half: 5 bytes a second; of the faster one all: 20.
  const ParkingPlace host{Placement::kHostSwap, DeviceId(0)};
  EXPECT_DOUBLE_EQ(pace(host, 20, 4000), 1);
  EXPECT_DOUBLE_EQ(pace(host, 20, 1000), 1);
  EXPECT_DOUBLE_EQ(pace(host, 20, 6000), 1.5);
  EXPECT_DOUBLE_EQ(pace(host, 20, 500), 0.5);
  EXPECT_DOUBLE_EQ(pace(host, 0, 500), 1);
  EXPECT_DOUBLE_EQ(pace({Placement::kNvmeSwap, DeviceId(0)}, 20, 500), 1);  // there is no drive
}

// Step `step` takes 100 + step; worker 0 has stage 0, worker 1 stage 1.
TEST(MeasuredSteps, AreTheMediansOfTheThirdToTheSeventh) {
  const auto transports = MakeInProcessTransports(2, [] { return absl::OkStatus(); });
  std::vector<absl::StatusOr<MeasuredRun>> runs(2);
  std::vector<std::thread> threads;
  const ParkingPlace host{Placement::kHostSwap, DeviceId(0)};
  for (int worker = 0; worker < 2; ++worker) {
    threads.emplace_back([&, worker] {
      MeasuredSteps steps(2);
      const Action forward = ParseAction(absl::StrCat(worker, "F0")).value();
      for (const int64_t step : {900, 800, 7, 3, 5, 6, 4}) {  // the first two warm up
        EXPECT_FALSE(steps.Complete());
        const Nanos end(step * (worker + 1));
        steps.Note({{forward, IntervalKind::kBusy, Nanos(0), end}}, Nanos(100 + step),
                   {{.place = host, .use = {1, Bytes(10 * step), Nanos(step)}}});
      }
      EXPECT_TRUE(steps.Complete());
      Coordinator coordinator(transports[worker].get(), WorkerId(worker), 2);
      runs[worker] = steps.Gather(coordinator);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& run : runs) {
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->step, Nanos(105));
    EXPECT_EQ(run->stages[0][static_cast<size_t>(ActionKind::kForward)], Nanos(5));
    EXPECT_EQ(run->stages[1][static_cast<size_t>(ActionKind::kForward)], Nanos(10));
    EXPECT_EQ(run->stages[0][static_cast<size_t>(ActionKind::kBackward)], Nanos(0));
    ASSERT_EQ(run->links[1].size(), 1u);
    EXPECT_EQ(run->links[1][0].place, host);
    EXPECT_EQ(run->links[1][0].use, (CopyLinkUse{5, Bytes(250), Nanos(25)}));
  }
}

}  // namespace
}  // namespace siphon
