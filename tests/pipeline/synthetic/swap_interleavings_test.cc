// Workers, the copies of their tensors into each other's memory, and their messages, all under way
// at the same time and held up at random: whatever the order in which threads come by, a step ends
// with the numbers of one worker alone. Made for the thread sanitizer, which looks at each order
// anew; the bytes that are looked at are those of pipeline/synthetic and the engine's checksums.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/transport/ring_transport.h"
#include "planner/lower_schedule.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/lowering/make_groups.h"
#include "swap/device/shared_ways.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/pipeline/synthetic/synthetic_job.h"
#include "tests/pipeline/synthetic/synthetic_testing.h"
#include "tests/support/noise.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

constexpr int kLayersPerStage = 2;

// A job whose workers, of one device each, park with each other.
struct CrossingCase {
  std::string schedule;
  int workers = 4;
  int chunks = 1;
  int microbatches = 4;
  bool rings = false;  // messages in rings instead of in process
  int seed = 0;
};

// GoogleTest would print addresses, which CTest takes for a part of the test's name.
void PrintTo(const CrossingCase& one, std::ostream* out) { *out << one.schedule; }

// A way for the tensors of a group of `owner` to leave, with any of the other workers for lenders.
GroupChoice DicedWay(Dice& dice, int workers, WorkerId owner, const TensorGroup& group) {
  const int roll = dice.Roll(0, 6);
  if (roll == 0) return {};
  if (roll == 1) return {.placement = Placement::kHostSwap};
  if (roll == 2) return {.placement = Placement::kNvmeSwap};
  if (roll == 3 && group.kind == GroupKind::kActivations) {
    return {.placement = Placement::kRecompute};
  }
  std::vector<LenderWeight> lenders;
  for (int lender = 0; lender < workers; ++lender) {
    if (lender != owner.value) lenders.push_back({DeviceId(lender), dice.Roll(1, 3)});
  }
  return {.placement = Placement::kPeerSwap, .stripes = CutStripes(group.bytes, lenders, Bytes(1))};
}

// All kinds of tensors, layer by layer; one stage in three takes some of its
// optimizer steps on the host.
MemoryPlan CrossingPlan(Dice& dice, const SyntheticJobParts& parts, int workers) {
  MemoryPlan plan;
  for (size_t stage = 0; stage < parts.partition.stages.size(); ++stage) {
    const StageRange& range = parts.partition.stages[stage];
    StagePlan& planned = plan.stages.emplace_back();
    if (dice.Roll(0, 2) == 0) planned.update = UpdatePlace::kHost;
    for (const GroupKind kind : {GroupKind::kActivations, GroupKind::kParameters,
                                 GroupKind::kGradients, GroupKind::kOptimizerState}) {
      for (int layer = range.begin; layer < range.end; ++layer) {
        PlannedGroup group{.group = GroupOf(parts.profile, range, kind, {layer, layer + 1})};
        group.choice = DicedWay(dice, workers, parts.schedule.worker_of_stage[stage], group.group);
        planned.groups.push_back(std::move(group));
      }
    }
  }
  return plan;
}

LowerMemoryOptions DicedTimes(Dice& dice, size_t stages, size_t layers) {
  LowerMemoryOptions options;
  for (size_t stage = 0; stage < stages; ++stage) {
    options.timing.push_back({.forwards_to_leave = dice.Roll(0, 2),
                              .actions_to_come_back = dice.Roll(0, 2),
                              .actions_before_step = dice.Roll(0, 1),
                              .groups_ahead = dice.Roll(0, 2)});
    options.direct.push_back(DirectBackward::kDrop);
    options.weights.push_back(dice.Roll(0, 1) == 0 ? WeightResidence::kWholeActions
                                                   : WeightResidence::kLayerByLayer);
  }
  for (size_t layer = 0; layer < layers; ++layer) {
    options.made_ahead.push_back(dice.Roll(0, 3) - 1);
    options.shares.push_back(dice.Roll(0, 1) == 0 ? LowerMemoryOptions::kShares : dice.Roll(1, 7));
  }
  return options;
}

// A job without a plan, of a schedule that is lowered, whose passes take no time.
SyntheticJobParts PartsOf(const Schedule& schedule, int stages, int layers) {
  SyntheticJobParts parts;
  parts.partition = EvenPartition(stages, layers / stages);
  parts.profile = DicedProfile(layers, Bytes(100), /*seed=*/layers);
  parts.schedule = AppendOptimizerStep(InsertCommunication(schedule).value(), {});
  parts.make_clock = [] { return StandingClock(std::make_shared<Nanos>()); };
  return parts;
}

SyntheticJobParts CrossingParts(const CrossingCase& one) {
  const Schedule schedule = BuildSchedule(one.schedule, {.workers = one.workers,
                                                         .chunks = one.chunks,
                                                         .microbatches = one.microbatches})
                                .value();
  const int stages = StageCount(schedule);
  SyntheticJobParts parts = PartsOf(schedule, stages, stages * kLayersPerStage);
  Dice dice(one.seed);
  parts.memory = CrossingPlan(dice, parts, one.workers);
  const auto lowered =
      LowerMemoryPlan(parts.schedule, parts.memory,
                      DicedTimes(dice, parts.partition.stages.size(), parts.profile.layers.size()));
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  if (lowered.ok()) parts.schedule = *lowered;
  return parts;
}

// What each device lends, one owner's part behind the other's as in launch/plan_job/parking_region,
// and the ways out of the devices, which all of their links share.
class Windows {
 public:
  explicit Windows(const std::vector<WorkerParking>& parkings)
      : ways_bytes_(static_cast<size_t>(SharedWays::BytesFor(parkings.size()).value)),
        ways_(std::vector<SharedWay>(parkings.size(), {.rate = BytesPerSecond(200'000'000)}),
              absl::MakeSpan(ways_bytes_)) {
    for (size_t owner = 0; owner < parkings.size(); ++owner) {
      for (const auto& [place, bytes] : parkings[owner].bytes) {
        if (place.tier != Placement::kPeerSwap) continue;
        std::vector<std::byte>& window = of_lender_[place.lender];
        begins_[{static_cast<int>(owner), place}] = window.size();
        window.resize(window.size() + static_cast<size_t>(bytes.value));
      }
    }
  }
  absl::Span<std::byte> Part(WorkerId owner, const ParkingPlace& place, Bytes bytes) {
    return absl::MakeSpan(of_lender_.at(place.lender))
        .subspan(begins_.at({owner.value, place}), static_cast<size_t>(bytes.value));
  }
  Nanos Book(int way, Bytes bytes, Nanos begin) const {
    return ways_.Book({SharedWayId(way)}, bytes, begin);
  }

 private:
  std::map<DeviceId, std::vector<std::byte>> of_lender_;
  std::map<std::pair<int, ParkingPlace>, size_t> begins_;
  std::vector<std::byte> ways_bytes_;
  const SharedWays ways_;
};

// One job with its noise. Chunks are numbered through for each worker, in the order in which its
// threads come to them.
class CrossingJob {
 public:
  // `before_chunk` is called by the copying threads.
  using BeforeChunk = std::function<absl::Status(WorkerId worker, int chunk)>;

  explicit CrossingJob(const CrossingCase& one, BeforeChunk before_chunk = nullptr)
      : noise_(one.seed), before_chunk_(std::move(before_chunk)), chunks_(one.workers) {
    SyntheticJobParts parts = CrossingParts(one);
    const auto parkings = LayOutParking(parts.memory, parts.schedule);
    EXPECT_TRUE(parkings.ok()) << parkings.status();
    windows_ = std::make_unique<Windows>(*parkings);
    parts.adjust_parking = [this, parkings = *parkings, seed = one.seed](
                               WorkerId worker, InProcessParkingOptions& options) {
      Disturb(worker, parkings[static_cast<size_t>(worker.value)], seed, options);
    };
    parts.connect = [this, rings = one.rings](const WorkerLayout& layout,
                                              const LivenessCheck& check) {
      return Connect(layout, rings, check);
    };
    parts.observer = [this](const Action&) {
      noise_.Pause();
      return absl::OkStatus();
    };
    auto made = SyntheticJob::Make(std::move(parts));
    status_ = made.status();
    if (made.ok()) job_ = *std::move(made);
  }

  // That of making it.
  const absl::Status& status() const { return status_; }
  SyntheticJob& job() { return *job_; }
  int Chunks(int worker) const { return chunks_[static_cast<size_t>(worker)]; }

 private:
  void Disturb(WorkerId worker, const WorkerParking& parking, int seed,
               InProcessParkingOptions& options) {
    options.lent = [this, worker, parking](const ParkingPlace& place) {
      return windows_->Part(worker, place, parking.bytes.at(place));
    };
    options.adjust = [this, worker, seed](CpuBackendOptions& backend) {
      Dice dice(100 * seed + worker.value);
      backend.chunk = Bytes(dice.Roll(30, 300));
      backend.clock = noise_.Clock();
      for (CopyLinkRate& link : backend.links) {
        if (dice.Roll(0, 3) == 0) continue;  // as fast as memory
        link = {BytesPerSecond(dice.Roll(1, 1000) * int64_t{1'000'000}), Nanos(dice.Roll(0, 9000))};
      }
      if (dice.Roll(0, 1) == 0) {
        backend.book = [this, worker](CopyLane, CopyLinkId, Bytes bytes, Nanos begin) {
          return windows_->Book(worker.value, bytes, begin);
        };
      }
      backend.before_chunk = [this, worker](const CopyChunk&) {
        noise_.Pause();
        const int chunk = chunks_[static_cast<size_t>(worker.value)]++;
        return before_chunk_ == nullptr ? absl::OkStatus() : before_chunk_(worker, chunk);
      };
    };
  }
  ThreadJob Connect(const WorkerLayout& layout, bool rings, const LivenessCheck& check) {
    const int workers = WorkerCount(layout);
    ThreadJob job;
    if (rings) {
      std::vector<RingSpec> specs;
      for (const Channel& channel : ChannelsOf(layout)) specs.push_back({channel, Bytes(192)});
      job = MakeRingJob(workers, LayOutRings(std::move(specs)), check);
    } else {
      job = MakeInProcessJob(workers, check);
    }
    for (std::unique_ptr<Transport>& transport : job.transports) {
      transport = std::make_unique<NoisyTransport>(std::move(transport), &noise_);
    }
    return job;
  }

  Noise noise_;
  const BeforeChunk before_chunk_;
  std::vector<std::atomic<int>> chunks_;  // [worker]
  std::unique_ptr<Windows> windows_;
  absl::Status status_;
  std::unique_ptr<SyntheticJob> job_;
};

// What a few steps come to: the same for every schedule, plan and order of threads. (That bytes of
// tensors are right, the stages look at in each step.)
struct CrossingNumbers {
  std::vector<std::vector<float>> losses;  // [step]
  std::vector<double> norms;               // [step]
  friend bool operator==(const CrossingNumbers&, const CrossingNumbers&) = default;
};

CrossingNumbers ThreeSteps(SyntheticJob& job) {
  CrossingNumbers numbers;
  for (int step = 0; step < 3; ++step) {
    const SyntheticStep ran = job.Run(job.schedule(), StepMode::kTrain, step,
                                      {.update = step + 1, .learning_rate = 0.1, .clip_norm = 1});
    for (const auto& report : ran.reports) {
      EXPECT_TRUE(report.ok()) << report.status();
      if (!report.ok()) return numbers;
      EXPECT_EQ(report->gradient_norm, ran.reports[0]->gradient_norm);
    }
    numbers.losses.push_back(ran.reports[0]->losses);
    numbers.norms.push_back(ran.reports[0]->gradient_norm);
  }
  return numbers;
}

// Of one worker that has all layers and moves nothing.
CrossingNumbers NumbersAlone(const CrossingCase& one) {
  const int stages = one.workers * one.chunks;
  auto job = SyntheticJob::Make(
      PartsOf(BuildSchedule("gpipe", {.workers = 1, .microbatches = one.microbatches}).value(), 1,
              stages * kLayersPerStage));
  EXPECT_TRUE(job.ok()) << job.status();
  return ThreeSteps(**job);
}

class SwapInterleavings : public testing::TestWithParam<CrossingCase> {};

TEST_P(SwapInterleavings, GiveTheNumbersOfOneWorkerAlone) {
  CrossingCase one = GetParam();
  const CrossingNumbers alone = NumbersAlone(one);
  EXPECT_EQ(alone.losses.size(), 3u);
  constexpr int kSeeds = kSanitized ? 3 : 8;
  for (one.seed = 1; one.seed <= kSeeds; ++one.seed) {
    one.rings = one.seed % 2 == 0;
    SCOPED_TRACE(testing::Message() << "seed " << one.seed);
    CrossingJob crossing(one);
    ASSERT_TRUE(crossing.status().ok()) << crossing.status();
    EXPECT_EQ(ThreeSteps(crossing.job()), alone);
    for (int worker = 0; worker < one.workers; ++worker) EXPECT_GT(crossing.Chunks(worker), 20);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, SwapInterleavings,
    testing::Values(CrossingCase{.schedule = "1f1b"}, CrossingCase{.schedule = "zb_h1"},
                    CrossingCase{.schedule = "interleaved_1f1b", .chunks = 2},
                    CrossingCase{.schedule = "zbv", .workers = 3, .chunks = 2, .microbatches = 6}),
    [](const auto& info) { return TestNameOf(info.param.schedule); });

// The n-th chunk of a worker cannot be copied, for every n of a small run and each worker: that
// worker names the copy, all others end, and nothing touches anybody's memory afterwards.
TEST(SwapInterleavings, EndWithTheCopyThatFailsWhicheverItIs) {
  const CrossingCase one{.schedule = "1f1b", .workers = 2, .microbatches = 3, .seed = 5};
  for (int worker = 0; worker < one.workers; ++worker) {
    int failing = 0;
    for (bool failed = true; failed; ++failing) {
      SCOPED_TRACE(absl::StrCat("worker ", worker, ", chunk ", failing));
      CrossingJob crossing(one, [&](WorkerId me, int chunk) {
        return me == WorkerId(worker) && chunk == failing ? absl::UnavailableError("injected")
                                                          : absl::OkStatus();
      });
      if (!crossing.status().ok()) {  // of what is away before the first step
        EXPECT_THAT(std::string(crossing.status().message()), testing::HasSubstr(": injected"));
        continue;
      }
      const SyntheticStep step = crossing.job().Run(crossing.job().schedule(), StepMode::kTrain, 0,
                                                    {.update = 1, .learning_rate = 0.1});
      failed = crossing.Chunks(worker) > failing;
      for (int each = 0; each < one.workers; ++each) {
        const absl::Status& status = step.reports[static_cast<size_t>(each)].status();
        if (!failed || (status.ok() && each != worker)) {
          EXPECT_TRUE(status.ok()) << status;
          continue;
        }
        EXPECT_THAT(
            std::string(status.message()),
            testing::ContainsRegex(
                each == worker ? absl::StrCat("^worker ", each,
                                              " .*copy (out|in), link [0-9], chunk "
                                              "[0-9]+ \\([0-9]+ bytes\\): injected$")
                               : absl::StrCat("^worker ", each, " .*: another worker failed$")));
      }
    }
    EXPECT_GT(failing, 10);
  }
}

}  // namespace
}  // namespace siphon
