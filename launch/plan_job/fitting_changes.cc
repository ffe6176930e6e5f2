#include <algorithm>
#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "launch/plan_job/job_memory.h"
#include "launch/plan_job/plan_job.h"
#include "planner/memory/held_bytes.h"
#include "planner/model_spec.h"

namespace siphon {
namespace {

// Beyond so many actions a try takes seconds; then only the capacity is suggested.
constexpr int64_t kMostActions = 400'000;
// More stages than this are no small change.
constexpr int64_t kMostStages = 64;
// From here on a mebibyte more or less is little.
constexpr Bytes kFewMebibytes{int64_t{16} << 20};

class ChangeSearch {
 public:
  explicit ChangeSearch(const PlannedJob& planned) : planned_(planned) {}

  std::vector<FittingChange> Search() {
    const int64_t actions =
        int64_t{planned_.plan.training.microbatches} * planned_.job.pipeline.stages;
    if (actions <= kMostActions) {
      TrySchedule();
      TryMicrobatches();
      TryStages(planned_.job, "", "more stages");
      TryModel();
      TryOptimizer();
      TryStagesAndMicrobatches();
    }
    AddCapacity();
    return std::move(changes_);
  }

 private:
  // Whether the changed job fits; then it is noted.
  bool Try(const JobConfig& job, const ModelSpec& model, const std::string& setting,
           const std::string& meaning) {
    const auto plan = PlanJob(job, model, /*validation_samples=*/0, planned_.schedule_csv);
    if (!plan.ok()) return false;
    const auto estimate =
        EstimateJob({job, model, *plan, planned_.schedule_csv}, Accounting::kRuntime);
    if (!estimate.ok() || FindMisfit(job, *estimate).has_value()) return false;
    changes_.push_back({setting, meaning, LargestWorker(*estimate)});
    return true;
  }

  void TrySchedule() {
    if (planned_.job.pipeline.schedule != "gpipe") return;
    JobConfig job = planned_.job;
    job.pipeline.schedule = "1f1b";
    Try(job, planned_.model, "pipeline.schedule=1f1b",
        "the same bits with fewer microbatches alive");
  }

  // Smaller ones that divide the global batch, largest first.
  std::vector<int64_t> SmallerMicrobatches() const {
    std::vector<int64_t> sizes;
    const TrainConfig& train = planned_.job.train;
    for (int64_t size = train.microbatch - 1; size > 0; --size) {
      const int64_t actions = train.global_batch / size * planned_.job.pipeline.stages;
      if (train.global_batch % size == 0 && actions <= kMostActions) sizes.push_back(size);
    }
    return sizes;
  }

  void TryMicrobatches() {
    for (const int64_t size : SmallerMicrobatches()) {
      JobConfig job = planned_.job;
      job.train.microbatch = size;
      if (Try(job, planned_.model, absl::StrCat("train.microbatch=", size),
              "smaller microbatches")) {
        return;
      }
    }
  }

  // Fewest first. `more` is set besides.
  bool TryStages(const JobConfig& start, const std::string& more, const std::string& meaning) {
    if (!start.pipeline.partition_layers.empty()) return false;
    const auto layers = static_cast<int64_t>(planned_.model.layers.size());
    for (int64_t stages = start.pipeline.stages + 1; stages <= std::min(layers, kMostStages);
         ++stages) {
      JobConfig job = start;
      job.pipeline.stages = stages;
      if (Try(job, planned_.model, absl::StrCat(more, "pipeline.stages=", stages), meaning)) {
        return true;
      }
    }
    return false;
  }

  void TryModel() {
    const ModelOptions& options = planned_.model.options;
    if (options.kind != planned_.job.model.kind ||
        !absl::c_linear_search(KnownModelKinds(), options.kind)) {
      return;
    }
    const auto attempt = [&](ModelOptions changed, const std::string& setting,
                             const std::string& meaning) {
      const auto model = BuildModelSpec(changed);
      const auto precision = ParsePrecision(planned_.job.train.precision);
      if (!model.ok() || !precision.ok()) return;
      Try(planned_.job, InPrecision(*model, *precision), setting, meaning);
    };
    ModelOptions fused = options;
    fused.flash_attention = true;
    if (!options.flash_attention && options.dropout == 0) {
      attempt(fused, "model.flash_attention=true", "attention without its matrix of scores");
    }
    if (options.dropout > 0) {
      ModelOptions plain = options;
      plain.dropout = 0;
      attempt(plain, "model.dropout=0", "no masks, and fused attention where it is on");
    }
  }

  void TryOptimizer() {
    if (planned_.job.train.optimizer == "sgd") return;
    JobConfig job = planned_.job;
    job.train.optimizer = "sgd";
    Try(job, planned_.model, "train.optimizer=sgd", "no moments, but another optimizer");
  }

  // Only when neither does it alone.
  void TryStagesAndMicrobatches() {
    if (!changes_.empty()) return;
    const std::vector<int64_t> sizes = SmallerMicrobatches();
    if (sizes.empty()) return;
    JobConfig job = planned_.job;
    job.train.microbatch = sizes.back();
    TryStages(job, absl::StrCat("train.microbatch=", sizes.back(), " --set "),
              "smaller microbatches on more stages");
  }

  // On a device, more capacity needs a little more again (MemoryInputsOf), until it fits.
  void AddCapacity() {
    JobConfig job = planned_.job;
    PlannedJob planned{job, planned_.model, planned_.plan, planned_.schedule_csv, planned_.profile};
    while (true) {
      const auto estimate = EstimateJob(planned, Accounting::kRuntime);
      if (!estimate.ok()) return;
      const Bytes needed = LargestWorker(*estimate) + job.memory.reserve;
      const CapacityUnit unit = CapacityUnitFor(needed);
      const int64_t units = (needed.value + unit.bytes.value - 1) / unit.bytes.value;
      const std::vector<Bytes> before = std::exchange(job.memory.capacity, {unit.bytes * units});
      if (job.pipeline.backend == "cuda" && job.memory.capacity != before) continue;
      changes_.push_back({absl::StrCat("memory.capacity=", units, unit.name), "more memory",
                          LargestWorker(*estimate)});
      return;
    }
  }

  const PlannedJob& planned_;
  std::vector<FittingChange> changes_;
};

}  // namespace

CapacityUnit CapacityUnitFor(Bytes needed) {
  if (needed < kFewMebibytes) return {Bytes(int64_t{1} << 10), "KiB"};
  return {Bytes(int64_t{1} << 20), "MiB"};
}

std::vector<FittingChange> ChangesThatFit(const PlannedJob& planned) {
  return ChangeSearch(planned).Search();
}

}  // namespace siphon
