#include "launch/commands/fix_search.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/commands/least_size.h"
#include "launch/commands/try_fix.h"
#include "launch/plan_job/job_memory.h"

namespace siphon {
namespace {

// Larger steps are planned for minutes; then only the strategy, the host and the capacity are
// tried.
constexpr int64_t kMostActions = 100'000;
// More stages than this are no small change.
constexpr int64_t kMostStages = 64;
// Below this, suggested sizes are in whole kibibytes, above it in mebibytes: finer than LeastSize.
constexpr Bytes kCoarse{128 << 20};
// Whatever is copied to the host is there at most so often: as it is, and as the host steps it.
constexpr int64_t kMostOnHost = 2;

CapacityUnit UnitOf(Bytes most) {
  return most < kCoarse ? CapacityUnit{Bytes(1 << 10), "KiB"} : CapacityUnit{Bytes(1 << 20), "MiB"};
}

// Exactly, in the largest unit that it is a multiple of.
std::string SizeText(Bytes bytes) {
  for (const CapacityUnit& unit : {CapacityUnit{Bytes(1 << 20), "MiB"}, {Bytes(1 << 10), "KiB"}}) {
    if (bytes.value % unit.bytes.value == 0) {
      return absl::StrCat(bytes.value / unit.bytes.value, unit.name);
    }
  }
  return absl::StrCat(bytes.value, "B");
}

using Settings = std::vector<std::string>;

// Changes of one sort.
class FixSearch {
 public:
  FixSearch(const PlanRequest& request, const StudiedPlan& misfit,
            const std::function<void(absl::string_view)>& say,
            std::function<bool(const PlanFix&)> enough)
      : request_(request),
        misfit_(misfit),
        job_(misfit.job),
        say_(say),
        enough_(std::move(enough)) {}

  using Sort = void (FixSearch::*)();
  static constexpr std::array<Sort, kFixSorts> Sorts() {
    return {&FixSearch::TryAnew,       &FixSearch::TrySchedule,  &FixSearch::TryShapes,
            &FixSearch::TryHost,       &FixSearch::TryAttention, &FixSearch::TryWithoutDropout,
            &FixSearch::TryMomentless, &FixSearch::TryCapacity};
  }

  FixesOfSort Search(Sort sort) {
    (this->*sort)();
    return {std::move(fixes_), done_};
  }

 private:
  static Settings Microbatch(int64_t size) { return {absl::StrCat("train.microbatch=", size)}; }
  static Settings Stages(int64_t stages) { return {absl::StrCat("pipeline.stages=", stages)}; }

  int64_t Actions(int64_t microbatch, int64_t stages) const {
    return job_.train.global_batch / microbatch * stages;
  }

  TriedFix Try(const Settings& change, const std::string& meaning,
               PlanningGoal goal = PlanningGoal::kAnyThatFits) const {
    say_(absl::StrCat("trying ", SettingsText(SettingsOfTry(misfit_, change))));
    return TryFix(request_, misfit_, {change, meaning, goal});
  }

  // As it is with the best plan.
  bool Take(const std::optional<PlanFix>& found) {
    if (!found.has_value()) return false;
    std::optional<PlanFix> fix =
        Try(found->settings, found->meaning, PlanningGoal::kShortestStep).fix;
    if (!fix.has_value()) return false;
    done_ = enough_(*fix);
    if (fix->devices > Bytes(0)) *fix = OnLargerDevices(*std::move(fix));
    fixes_.push_back(*std::move(fix));
    return true;
  }

  // No setting gives a device more memory than it has.
  PlanFix OnLargerDevices(PlanFix fix) const {
    std::erase_if(fix.settings, [](const std::string& setting) {
      return absl::StartsWith(setting, kCapacityKey);
    });
    fix.meaning = absl::StrCat("more than the ", FormatBytes(misfit_.device_memory), " of these");
    return fix;
  }

  bool Note(const Settings& settings, const std::string& meaning) {
    return Take(Try(settings, meaning).fix);
  }

  // The first of `changes` that fits, where each fits if one before it does, and schedules may
  // refuse any of them: by bisection of the others, and the one that is noted was planned.
  bool NoteFirst(std::vector<Settings> changes, const std::string& meaning) {
    if (done_) return false;
    TriedFix last;
    while (!changes.empty() && !(last = Try(changes.back(), meaning)).is_job) changes.pop_back();
    std::optional<PlanFix> best = std::move(last.fix);
    if (!best.has_value()) return false;
    size_t low = 0;
    size_t high = changes.size() - 1;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      TriedFix tried = Try(changes[middle], meaning);
      if (!tried.is_job) {
        changes.erase(changes.begin() + static_cast<ptrdiff_t>(middle));
        --high;
      } else if (tried.fix.has_value()) {
        best = std::move(tried.fix);
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return Take(best);
  }

  // Those that divide the global batch, largest first.
  std::vector<int64_t> SmallerMicrobatches() const {
    std::vector<int64_t> sizes;
    for (int64_t size = job_.train.microbatch - 1; size > 0; --size) {
      const bool divides = job_.train.global_batch % size == 0;
      if (divides && Actions(size, job_.pipeline.stages) <= kMostActions) sizes.push_back(size);
    }
    return sizes;
  }

  // Up to as many as the model has layers and the server devices.
  int64_t StageLimit() const {
    int64_t most = static_cast<int64_t>(misfit_.problem.profile.layers.size());
    const auto workers = static_cast<int64_t>(misfit_.plan.workers.size());
    const int64_t devices =
        misfit_.job.topology.name.empty() ? most : DeviceCount(misfit_.problem.topology);
    most = std::min(
        {most, kMostStages, devices * (job_.pipeline.stages / std::max<int64_t>(1, workers))});
    while (most > 0 && Actions(job_.train.microbatch, most) > kMostActions) --most;
    return most;
  }

  // Each multiple of the stages that a worker has.
  std::vector<Settings> MoreStages(const Settings& besides) const {
    std::vector<Settings> changes;
    if (!job_.pipeline.partition_layers.empty()) return changes;
    const auto workers = static_cast<int64_t>(misfit_.plan.workers.size());
    const int64_t chunks = std::max<int64_t>(1, job_.pipeline.stages / workers);
    for (int64_t stages = job_.pipeline.stages + chunks; stages <= StageLimit(); stages += chunks) {
      changes.push_back(besides);
      const Settings more = Stages(stages);
      changes.back().insert(changes.back().end(), more.begin(), more.end());
    }
    return changes;
  }

  bool IsSmall() const {
    return Actions(job_.train.microbatch, job_.pipeline.stages) <= kMostActions;
  }
  bool Attends() const { return job_.model.kind == "gpt" || job_.model.kind == "bert"; }

  // In place of the plan file, if it is that which does not fit; else, or if that does not either,
  // all strategies together.
  void TryAnew() {
    const bool follows = FollowsFile(request_, job_);
    if (follows && Note({}, "planned anew, not as the plan file says")) return;
    if (StrategyOfRequest(request_, job_) == "auto") return;
    Note({"memory.strategy=auto"},
         absl::StrCat("all ways to save memory together",
                      request_.strategy.empty() ? "" : ", in place of --strategy"));
  }

  void TrySchedule() {
    if (!IsSmall() || job_.pipeline.schedule != "gpipe") return;
    Note({"pipeline.schedule=1f1b"}, "the same bits with fewer microbatches alive");
  }

  void TryAttention() {
    const ModelConfig& model = job_.model;
    if (!IsSmall() || !Attends() || model.flash_attention || model.dropout > 0) return;
    Note({"model.flash_attention=true"}, "attention without its matrix of scores");
  }

  void TryWithoutDropout() {
    if (!IsSmall() || !Attends() || job_.model.dropout == 0) return;
    Note({"model.dropout=0"}, "no masks, and fused attention where it is on");
  }

  void TryMomentless() {
    if (!IsSmall() || job_.train.optimizer == "sgd") return;
    Note({"train.optimizer=sgd"}, "no moments, but another optimizer");
  }

  // Microbatches and stages.
  void TryShapes() {
    if (!IsSmall()) return;
    std::vector<Settings> smaller;
    for (const int64_t size : SmallerMicrobatches()) smaller.push_back(Microbatch(size));
    const bool by_size = NoteFirst(smaller, "smaller microbatches");
    const bool by_stages = NoteFirst(MoreStages({}), "more stages");
    if (by_size || by_stages || smaller.empty()) return;
    NoteFirst(MoreStages(smaller.back()), "smaller microbatches on more stages");
  }

  // The least size, in bytes, with which the job fits: more than `too_little`, `enough` at most.
  // `settings` of a size, and what of it a plan has used.
  template <typename SettingsOf, typename Used>
  void NoteLeast(Bytes too_little, Bytes enough, const std::string& meaning,
                 const SettingsOf& settings_of, const Used& used) {
    const int64_t unit = UnitOf(enough).bytes.value;
    const int64_t low = too_little.value / unit;
    const int64_t high = std::max((enough.value + unit - 1) / unit, low + 1);
    std::optional<SizeTried<PlanFix>> least =
        LeastSize<PlanFix>(low, high, [&](int64_t size) -> std::optional<SizeTried<PlanFix>> {
          std::optional<PlanFix> fix = Try(settings_of(Bytes(size * unit)), meaning).fix;
          if (!fix.has_value()) return std::nullopt;
          const int64_t needed = (used(*fix).value + unit - 1) / unit;
          return SizeTried<PlanFix>{*std::move(fix), needed};
        });
    if (least.has_value()) Take(least->found);
  }

  // Where the host has a limit: up to what may ever be there.
  void TryHost() {
    const Bytes limit = job_.memory.host_capacity;
    if (limit == Bytes(0)) return;
    Bytes most;
    for (size_t worker = 0; worker < misfit_.kept.peak.size(); ++worker) {
      most += PeakOf(misfit_.kept, worker) * kMostOnHost;
    }
    NoteLeast(
        limit, std::max(most, limit), "more memory of the host, to within 1 %",
        [](Bytes size) { return Settings{absl::StrCat(kHostCapacityKey, "=", SizeText(size))}; },
        [](const PlanFix& fix) { return fix.host_peak; });
  }

  bool Lacks(size_t worker) const {
    return CapacityOf(misfit_, worker) < PeakOf(misfit_.kept, worker);
  }

  // Each worker that lacks memory has `size`, or what it had; the others what they had.
  Settings Capacities(Bytes size) const {
    const std::vector<Bytes>& given = job_.memory.capacity;
    if (given.size() < 2) return {absl::StrCat(kCapacityKey, "=", SizeText(size))};
    std::vector<std::string> sizes;
    for (size_t worker = 0; worker < given.size(); ++worker) {
      sizes.push_back(SizeText(Lacks(worker) ? std::max(given[worker], size) : given[worker]));
    }
    return {absl::StrCat(kCapacityKey, "=[", absl::StrJoin(sizes, ","), "]")};
  }

  // From what the worker has that has least to what keeping everything takes, which every strategy
  // does where it fits.
  void TryCapacity() {
    const Bytes reserve = job_.memory.reserve;
    std::optional<Bytes> least;
    Bytes most;
    for (size_t worker = 0; worker < misfit_.kept.peak.size(); ++worker) {
      most = std::max(most, PeakOf(misfit_.kept, worker));
      if (!Lacks(worker)) continue;
      const Bytes has = CapacityOf(misfit_, worker);
      least = std::min(least.value_or(has), has);
    }
    if (!least.has_value()) return;
    NoteLeast(
        *least + reserve, most + reserve, "more memory, to within 1 %",
        [&](Bytes size) { return Capacities(size); },
        [&](const PlanFix& fix) {
          return job_.memory.capacity.size() < 2 ? fix.largest_peak + reserve : most + reserve;
        });
  }

  const PlanRequest& request_;
  const StudiedPlan& misfit_;
  const JobConfig& job_;
  const std::function<void(absl::string_view)>& say_;
  const std::function<bool(const PlanFix&)> enough_;
  std::vector<PlanFix> fixes_;
  bool done_ = false;
};

}  // namespace

FixesOfSort SearchFixes(int sort, const PlanRequest& request, const StudiedPlan& misfit,
                        const std::function<void(absl::string_view)>& say,
                        const std::function<bool(const PlanFix&)>& enough) {
  return FixSearch(request, misfit, say, enough).Search(FixSearch::Sorts()[sort]);
}

}  // namespace siphon
