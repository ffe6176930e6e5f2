#include "launch/run/layer_profile/measure_cores.h"

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "launch/process/core_count.h"
#include "launch/run/layer_profile/layer_rounds.h"
#include "pipeline/torch/device/step_clock.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Sizes take turns so often, so that a machine that becomes slower spoils no ratio.
constexpr int kTurns = 2;

// What rounds took one of several threads.
struct Laps {
  absl::Status status;
  std::vector<int64_t> ns;
};

// Rounds in each of the first `running` of `models`, all of them begun together; the first is not
// noted, as a new thread's memory is cold.
std::vector<Laps> RunTogether(std::vector<LayerRounds>& models, size_t running, int rounds,
                              int threads) {
  std::vector<Laps> laps(running);
  std::barrier begin(static_cast<std::ptrdiff_t>(running));
  std::vector<std::thread> runners;
  for (size_t runner = 0; runner < running; ++runner) {
    runners.emplace_back([&, runner] {
      SetTorchThreads(threads);
      const StepClock clock(threads);
      Laps& mine = laps[runner];
      for (int round = 0; round <= rounds; ++round) {
        begin.arrive_and_wait();  // also after an error, for the others wait here
        if (!mine.status.ok()) continue;
        const int64_t before = clock.NowNs();
        mine.status = models[runner].Run(round, BackwardMode::kWhole, Noting::kOff);
        if (round > 0) mine.ns.push_back(clock.NowNs() - before);
      }
    });
  }
  for (std::thread& runner : runners) runner.join();
  return laps;
}

int64_t Median(std::vector<int64_t> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return std::max<int64_t>(1, *middle);
}

// `laps[n - 1]`: times of a round while n run.
CoreSharing SharingOf(const std::vector<std::vector<int64_t>>& laps, size_t cores) {
  const int64_t alone = Median(laps[0]);
  CoreSharing together;
  for (size_t running = 1; running <= cores; ++running) {
    const size_t measured = std::min(running, laps.size());
    const double each =
        static_cast<double>(alone) / static_cast<double>(Median(laps[measured - 1]));
    const double all = 1000 * std::min(each, 1.0) * static_cast<double>(running);
    together.push_back(std::max<int64_t>(1, static_cast<int64_t>(all)));
  }
  return together;
}

}  // namespace

absl::StatusOr<CoreSharing> MeasureCores(const PreparedJob& job, const Batch& batch, int rounds) {
  const auto threads = static_cast<int>(job.job.pipeline.threads_per_worker);
  const auto cores = static_cast<size_t>(std::max(1, CoreCount() / threads));
  const size_t most = std::min(cores, job.plan.training.programs.size());
  std::vector<LayerRounds> models;
  for (size_t model = 0; model < most; ++model) {
    SIPHON_ASSIGN_OR_RETURN(LayerRounds made, LayerRounds::Make(job, batch));
    models.push_back(std::move(made));
  }
  std::vector<std::vector<int64_t>> laps(most);
  for (int turn = 0; turn < kTurns; ++turn) {
    for (size_t running = most; running >= 1; --running) {
      for (const Laps& run :
           RunTogether(models, running, (rounds + kTurns - 1) / kTurns, threads)) {
        SIPHON_RETURN_IF_ERROR(run.status);
        std::vector<int64_t>& all = laps[running - 1];
        all.insert(all.end(), run.ns.begin(), run.ns.end());
      }
    }
  }
  return SharingOf(laps, cores);
}

}  // namespace siphon
