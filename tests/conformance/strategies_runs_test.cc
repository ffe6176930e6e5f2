// Every strategy with every schedule that trains, as whole jobs: planned for real at capacities
// from what just fits to ample, run with workers as threads of this process, never above the
// capacity, and the bits of one process. No pair is refused for what it is, only for too little
// memory. Each pair meets one model and one capacity, in turn; all of all with SIPHON_TEST_ALL=1.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/job_memory.h"
#include "launch/run/job/prepare_job.h"
#include "planner/status.h"
#include "planner/strategies/memory_strategy.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/job_runs.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/support/all_cases.h"

namespace siphon {
namespace {

constexpr const char* kModels[] = {"gpt", "bert", "mlp"};
enum class Room { kAmple, kTight, kJustFits };
constexpr Room kRooms[] = {Room::kAmple, Room::kTight, Room::kJustFits};

// On two workers, or one where the schedule takes no other shape, with as many microbatches as it
// takes.
std::optional<JobConfig> JobFor(const ScheduleEntry& entry, const std::string& model,
                                const ScratchFolder& folder) {
  for (const int workers : {2, 1}) {
    for (const int microbatches : {4, 5, 6}) {
      JobConfig job = SmallTextJob(folder, absl::StrCat(entry.name, "-", model), model);
      job.pipeline.schedule = entry.name;
      job.pipeline.stages = workers * entry.chunks;
      job.train.global_batch = job.train.microbatch * microbatches;
      job.train.steps = 2;
      job.checkpoint.every_steps = 2;
      job.memory.strategy = "keep";
      if (entry.update == WeightUpdate::kJustInTime) job.train.clip_norm = 0;
      if (PrepareJob(job, {}).ok()) return job;
    }
  }
  return std::nullopt;
}

class StrategyRuns : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto entry = FindSchedule(GetParam());
    ASSERT_TRUE(entry.ok()) << entry.status();
    for (const char* model : kModels) {
      const auto job = JobFor(*entry, model, folder_);
      ASSERT_TRUE(job.has_value()) << "the suite offers nothing that this schedule takes";
      const auto prepared = PrepareJob(*job, {});
      ASSERT_TRUE(prepared.ok()) << prepared.status();
      const auto expected =
          ReferenceResult(*job, OrdersOf(prepared->plan.training, prepared->plan.partition));
      ASSERT_TRUE(expected.ok()) << expected.status();
      const auto estimate =
          EstimateJob({prepared->job, prepared->model.spec, prepared->plan}, Accounting::kRuntime);
      ASSERT_TRUE(estimate.ok()) << estimate.status();
      Kept& kept = kept_[model];
      kept.job = *job;
      kept.expected = *expected;
      for (const MemoryByKind& worker : estimate->workers) {
        kept.rings.push_back(worker[MemoryKind::kCommunication]);
        kept.peaks.push_back(Total(worker));
      }
    }
  }

  struct Kept {
    JobConfig job;
    JobResult expected;
    std::vector<Bytes> rings;
    std::vector<Bytes> peaks;
  };

  // So much of what keeping everything takes beside rings, worker by worker.
  static JobConfig With(const Kept& kept, const std::string& strategy, int64_t percent) {
    JobConfig job = kept.job;
    job.memory.strategy = strategy;
    job.memory.capacity.clear();
    for (size_t worker = 0; worker < kept.peaks.size(); ++worker) {
      const Bytes own = kept.peaks[worker] - kept.rings[worker];
      job.memory.capacity.push_back(kept.rings[worker] + Bytes(own.value / 100 * percent));
    }
    return job;
  }

  // The job with that room; nothing where the strategy cannot save so much.
  static std::optional<JobConfig> Planned(const Kept& kept, const std::string& strategy,
                                          Room room) {
    if (room == Room::kAmple) return With(kept, strategy, 130);
    std::optional<JobConfig> least;
    for (const int64_t percent : {97, 90, 80, 70, 60, 50}) {
      JobConfig job = With(kept, strategy, percent);
      const auto prepared = PrepareJob(job, {});
      if (!prepared.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(prepared.status())) << prepared.status();
        break;
      }
      least = std::move(job);
      if (room == Room::kTight) break;
    }
    return least;
  }

  // Whether there was too little memory for keeping everything; nothing where the strategy cannot
  // save as much as the room asks for.
  std::optional<bool> Trains(const std::string& model, const std::string& strategy, Room room) {
    SCOPED_TRACE(absl::StrCat(model, ", ", strategy, ", room ", static_cast<int>(room)));
    const Kept& kept = kept_[model];
    std::optional<JobConfig> job = Planned(kept, strategy, room);
    if (!job.has_value()) return std::nullopt;
    job->output.directory += absl::StrCat("-", strategy, "-", static_cast<int>(room));
    const auto trained = TrainInProcess(*job);
    EXPECT_TRUE(trained.ok()) << trained.status();
    if (!trained.ok()) return false;
    ExpectSame(kept.expected, *job, 0);
    const auto result = ReadResult(*job);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return false;
    const auto largest = std::max_element(job->memory.capacity.begin(), job->memory.capacity.end());
    EXPECT_LE(result->largest_peak, *largest);
    return room != Room::kAmple;
  }

  ScratchFolder folder_;
  std::map<std::string, Kept> kept_;  // by model
};

TEST_P(StrategyRuns, TrainLikeOneProcessWithinTheirCapacity) {
  const std::vector<std::string> schedules = LiveScheduleNames();
  const auto place = static_cast<size_t>(std::find(schedules.begin(), schedules.end(), GetParam()) -
                                         schedules.begin());
  int saved = 0;
  size_t turn = place;
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    ++turn;
    constexpr size_t kChoices = std::size(kModels) * std::size(kRooms);
    // The next one where that is not to be had.
    for (size_t tried = 0; tried < kChoices; ++tried) {
      const size_t choice = (turn + tried) % kChoices;
      const std::optional<bool> had_to_save =
          Trains(kModels[choice % std::size(kModels)], std::string(strategy.name),
                 kRooms[choice / std::size(kModels)]);
      if (!had_to_save.has_value()) continue;
      saved += *had_to_save ? 1 : 0;
      if (!TakesAllCases()) break;
    }
  }
  EXPECT_GT(saved, 0) << "no strategy has had to do anything";
}

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names = LiveScheduleNames();
  std::erase(names, "csv");  // needs a file, which runs as its lines say
  return names;
}

INSTANTIATE_TEST_SUITE_P(Schedules, StrategyRuns, testing::ValuesIn(ScheduleNames()),
                         [](const auto& info) { return TestNameOf(info.param); });

}  // namespace
}  // namespace siphon
