#ifndef SIPHON_TESTS_LAUNCH_RUN_SECOND_CHOICE_RUNS_H_
#define SIPHON_TESTS_LAUNCH_RUN_SECOND_CHOICE_RUNS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "launch/config/read_text_file.h"
#include "launch/run/run_worker.h"
#include "pipeline/state_swaps.h"
#include "planner/lowering/lower_memory_plan.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/parking_job.h"
#include "tests/launch/run/seated_run.h"

namespace siphon {

// Whole runs, workers as threads, of which one is refused memory or has a slow link.
struct SecondChoiceRun {
  absl::Status status;
  std::string said;  // on standard error
  std::vector<nlohmann::json> steps;
  std::map<std::string, std::string> bits;  // of the last checkpoint
};

// At that phase, once so many steps are done.
inline SeatChange RefuseAt(int worker, const std::string& phase, int64_t step) {
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

inline SeatChange SlowLinkOf(int worker, const std::string& place) {
  return [=](WorkerSeat& seat) {
    if (seat.me != WorkerId(worker)) return;
    seat.slowness = [=](const std::string& link) { return link == place ? 100.0 : 1.0; };
  };
}

class SecondChoices : public ParkingJob {
 protected:
  static SecondChoiceRun Train(const PreparedJob& prepared, const SeatChange& meddle) {
    const SeatedRun seated = RunSeats(prepared, meddle);
    SecondChoiceRun run{.said = seated.said};
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

  SecondChoiceRun Unlimited() {
    const auto prepared = PrepareJob(Job(4), {});
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    return Train(*prepared, nullptr);
  }

  // Trains, and expects the bits of the run without limits, and capacities kept in every step.
  SecondChoiceRun TrainSame(const PreparedJob& prepared, const SeatChange& meddle) {
    SecondChoiceRun run = Train(prepared, meddle);
    EXPECT_TRUE(run.status.ok()) << run.status;
    ExpectSame(prepared, run);
    return run;
  }

  void ExpectSame(const PreparedJob& prepared, const SecondChoiceRun& run) {
    const SecondChoiceRun same = Unlimited();
    EXPECT_EQ(run.steps.size(), same.steps.size());
    for (size_t step = 0; step < std::min(run.steps.size(), same.steps.size()); ++step) {
      EXPECT_EQ(run.steps[step]["loss"], same.steps[step]["loss"]) << "step " << step + 1;
      for (const int64_t peak : run.steps[step]["peak_bytes"]) {
        EXPECT_LE(peak, prepared.job.memory.capacity[0].value) << "step " << step + 1;
      }
    }
    EXPECT_EQ(run.bits, same.bits);
  }

  // Layers wide enough for training state to be worth moving.
  JobConfig WideJob() const {
    JobConfig job = Job(4);
    job.model.hidden = 96;
    return job;
  }
  // Of which worker 0 has less than the 4.5 million bytes that it needs.
  JobConfig TightWideJob(const std::string& strategy) const {
    JobConfig job = WideJob();
    job.memory.capacity.assign(4, Bytes(12'000'000));
    job.memory.capacity[0] = Bytes(3'700'000);
    job.memory.strategy = strategy;
    return job;
  }
  SecondChoiceRun UnlimitedWide() {
    SecondChoiceRun run = Train(Prepared(WideJob()), nullptr);
    EXPECT_TRUE(run.status.ok()) << run.status;
    return run;
  }

  // The bits of the run without limits, and worker 0 within its capacity in every step.
  static void ExpectSameWithin(Bytes capacity, const SecondChoiceRun& run,
                               const SecondChoiceRun& unlimited) {
    EXPECT_EQ(run.bits, unlimited.bits);
    for (size_t step = 0; step < unlimited.steps.size(); ++step) {
      EXPECT_EQ(run.steps.at(step)["loss"], unlimited.steps[step]["loss"]) << "step " << step + 1;
      EXPECT_LE(run.steps[step]["peak_bytes"][0], capacity.value);
    }
  }

  PreparedJob Prepared(const JobConfig& job) {
    auto prepared = PrepareJob(job, {});
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    return *std::move(prepared);
  }
};

// The first lender of worker 0.
inline int LenderOf(const PreparedJob& prepared) {
  for (const auto& [place, bytes] : prepared.parking[0].bytes) {
    if (place.tier == Placement::kPeerSwap) return place.lender.value;
  }
  ADD_FAILURE() << "worker 0 parks with nobody";
  return -1;
}

inline int64_t BytesOut(const SecondChoiceRun& run, size_t step, const char* place) {
  int64_t sum = 0;
  for (const int64_t bytes : run.steps.at(step)["swapped_out_bytes"][place]) sum += bytes;
  return sum;
}
inline int64_t GroupsMoved(const SecondChoiceRun& run, size_t step) {
  return run.steps.at(step)["second_choice_groups"][0];
}

// Puts memory actions of the changed plan into the job's programs.
inline void LowerAnew(PreparedJob& prepared, const std::vector<SwapTiming>& timing) {
  Schedule& schedule = prepared.plan.training;
  for (std::vector<Action>& program : schedule.programs) {
    std::erase_if(program, [](const Action& action) {
      return IsMemory(action.kind) ||
             (action.kind == ActionKind::kStep && action.group != kWholeStage);
    });
  }
  const auto lowered = LowerMemoryPlan(schedule, prepared.plan.memory, {.timing = timing});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  if (lowered.ok()) schedule = *lowered;
}

inline bool ParksState(const MemoryPlan& plan) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (!StateGroupsAway(plan, {}, StageId(static_cast<int>(stage))).empty()) return true;
  }
  return false;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_RUN_SECOND_CHOICE_RUNS_H_
