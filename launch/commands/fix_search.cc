#include "launch/commands/fix_search.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
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

using Settings = std::vector<std::string>;

constexpr absl::string_view kAuto = "memory.strategy=auto";

// Changes of one sort.
class FixSearch {
 public:
  // `besides` is set with each change, and sizes are only looked for that change less than those of
  // `alone`.
  explicit FixSearch(const FixQuery& query, Settings besides = {}, FixesOfSort alone = {})
      : query_(query),
        misfit_(query.misfit),
        job_(query.misfit.job),
        besides_(std::move(besides)),
        alone_(std::move(alone)) {}

  using Sort = void (FixSearch::*)();
  static constexpr std::array<Sort, kFixSorts> Sorts() {
    return {&FixSearch::TryAnew,       &FixSearch::TrySchedule,  &FixSearch::TryShapes,
            &FixSearch::TryHost,       &FixSearch::TryAttention, &FixSearch::TryWithoutDropout,
            &FixSearch::TryMomentless, &FixSearch::TryCapacity};
  }
  static bool HasSizes(Sort sort) {
    return sort == &FixSearch::TryShapes || sort == &FixSearch::TryCapacity;
  }

  // `needs`: with how much it may fit, where capacity is tried; 0: not known.
  FixesOfSort Search(Sort sort, Bytes needs) {
    needs_ = needs;
    (this->*sort)();
    return std::move(made_);
  }

 private:
  static Settings Microbatch(int64_t size) { return {absl::StrCat("train.microbatch=", size)}; }
  static Settings Stages(int64_t stages) { return {absl::StrCat("pipeline.stages=", stages)}; }

  int64_t Actions(int64_t microbatch, int64_t stages) const {
    return job_.train.global_batch / microbatch * stages;
  }

  Settings Besides(const Settings& change) const {
    Settings all = besides_;
    all.insert(all.end(), change.begin(), change.end());
    return all;
  }

  TriedFix Try(const Settings& change, const std::string& meaning) const {
    return Plan(Besides(change), meaning, PlanningGoal::kAnyThatFits);
  }
  TriedFix Plan(const Settings& settings, const std::string& meaning, PlanningGoal goal) const {
    query_.say(absl::StrCat("trying ", SettingsText(SettingsOfTry(misfit_, settings))));
    return TryFix(query_.request, misfit_, {settings, meaning, goal});
  }

  // What it was, where it was a job at all.
  void NoteInVain(const Settings& change, const TriedFix& tried) {
    if (!tried.is_job || tried.fix.has_value()) return;
    const Settings all = Besides(change);
    made_.in_vain.push_back(all.empty() ? SettingsOfTry(misfit_, all) : all);
  }

  // As it is with a good plan.
  bool Take(const std::optional<PlanFix>& found) {
    if (!found.has_value()) return false;
    std::optional<PlanFix> fix =
        Plan(found->settings, found->meaning, PlanningGoal::kShortStep).fix;
    if (!fix.has_value()) return false;
    const bool is_enough = query_.enough(*fix);
    if (fix->devices > Bytes(0)) *fix = OnLargerDevices(*std::move(fix));
    made_.fixes.push_back(*std::move(fix));
    if (is_enough) made_.enough = made_.fixes.back();
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
    const TriedFix tried = Try(settings, meaning);
    NoteInVain(settings, tried);
    return Take(tried.fix);
  }

  // A size, and what sets it.
  struct SizedChange {
    int64_t size = 0;
    Settings settings;
  };

  // The first of `changes` that fits, where each fits if one before it does, and schedules may
  // refuse any of them: by bisection of the others, and the one that is noted was planned. Its
  // size; 0: none.
  int64_t NoteFirst(std::vector<SizedChange> changes, const std::string& meaning) {
    if (made_.enough.has_value()) return 0;
    TriedFix last;
    while (!changes.empty() && !(last = Try(changes.back().settings, meaning)).is_job) {
      changes.pop_back();
    }
    if (changes.empty()) return 0;
    NoteInVain(changes.back().settings, last);
    std::optional<PlanFix> best = std::move(last.fix);
    if (!best.has_value()) return 0;
    size_t low = 0;
    size_t high = changes.size() - 1;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      TriedFix tried = Try(changes[middle].settings, meaning);
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
    return Take(best) ? changes[high].size : 0;
  }

  // Those that divide the global batch, largest first.
  std::vector<SizedChange> SmallerMicrobatches() const {
    std::vector<SizedChange> sizes;
    for (int64_t size = job_.train.microbatch - 1; size > alone_.microbatch; --size) {
      const bool divides = job_.train.global_batch % size == 0;
      if (!divides || Actions(size, job_.pipeline.stages) > kMostActions) continue;
      sizes.push_back({size, Microbatch(size)});
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
    if (alone_.stages > 0) most = std::min(most, alone_.stages - 1);
    while (most > 0 && Actions(job_.train.microbatch, most) > kMostActions) --most;
    return most;
  }

  // Each multiple of the stages that a worker has.
  std::vector<SizedChange> MoreStages(const Settings& besides) const {
    std::vector<SizedChange> changes;
    if (!job_.pipeline.partition_layers.empty()) return changes;
    const auto workers = static_cast<int64_t>(misfit_.plan.workers.size());
    const int64_t chunks = std::max<int64_t>(1, job_.pipeline.stages / workers);
    for (int64_t stages = job_.pipeline.stages + chunks; stages <= StageLimit(); stages += chunks) {
      changes.push_back({stages, besides});
      const Settings more = Stages(stages);
      Settings& settings = changes.back().settings;
      settings.insert(settings.end(), more.begin(), more.end());
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
    const bool follows = FollowsFile(query_.request, job_);
    if (follows && Note({}, "planned anew, not as the plan file says")) return;
    if (StrategyOfRequest(query_.request, job_) == "auto") return;
    const Settings all_ways = {std::string(kAuto)};
    const TriedFix tried = Try(all_ways, WithAuto("all ways to save memory together"));
    NoteInVain(all_ways, tried);
    made_.auto_is_in_vain = tried.is_job && !tried.fix.has_value();
    made_.auto_needs = tried.needs;
    Take(tried.fix);
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
    const std::vector<SizedChange> smaller = SmallerMicrobatches();
    made_.microbatch = NoteFirst(smaller, Meaning("smaller microbatches"));
    made_.stages = NoteFirst(MoreStages({}), Meaning("more stages"));
    const bool alone = made_.microbatch > 0 || made_.stages > 0 || !alone_.fixes.empty();
    if (alone || smaller.empty()) return;
    NoteFirst(MoreStages(smaller.back().settings), Meaning("smaller microbatches on more stages"));
  }

  // Sizes in bytes, as of SizeRange.
  struct Sizes {
    Bytes too_little;
    Bytes enough;
    Bytes likely;
  };

  // The least size with which the job fits: more than `too_little`, `enough` at most; 0: none.
  // `settings` of a size, and what of it a plan has used.
  template <typename SettingsOf, typename Used>
  Bytes NoteLeast(const Sizes& sizes, const std::string& meaning, const SettingsOf& settings_of,
                  const Used& used) {
    const int64_t unit = UnitOf(sizes.enough).bytes.value;
    const auto rounded_up = [&](Bytes size) { return (size.value + unit - 1) / unit; };
    const int64_t low = sizes.too_little.value / unit;
    const int64_t high = std::max(rounded_up(sizes.enough), low + 1);
    Bytes noted;
    std::optional<PlanFix> least = LeastSize<PlanFix>(
        {low, high, rounded_up(sizes.likely)}, [&](int64_t size) -> SizeTried<PlanFix> {
          const Settings settings = settings_of(Bytes(size * unit));
          TriedFix tried = Try(settings, meaning);
          if (size == high && besides_.empty()) NoteInVain(settings, tried);
          if (!tried.fix.has_value()) {
            const Bytes more = tried.needs > Bytes(0) ? job_.memory.reserve : Bytes(0);
            return {std::nullopt, rounded_up(tried.needs + more)};
          }
          noted = Bytes(size * unit);
          const int64_t needed = rounded_up(used(*tried.fix));
          return {std::move(tried.fix), needed};
        });
    return Take(least) ? noted : Bytes(0);
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
        {limit, std::max(most, limit), Bytes(0)}, "more memory of the host, to within 1 %",
        [](Bytes size) { return Settings{absl::StrCat(kHostCapacityKey, "=", SizeText(size))}; },
        [](const PlanFix& fix) { return fix.host_peak; });
  }

  bool Lacks(size_t worker) const { return LacksMemory(misfit_, worker, needs_); }

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
    const bool is_known = needs_ > Bytes(0);
    // Workers may hold a little more than `kept` says, where they are to follow a plan.
    most = std::max(most, ALittleMoreThan(needs_));
    // What is exact to a hundredth is less only where it is so by more.
    const Bytes less(alone_.capacity.value / kSizeExactness * (kSizeExactness - 1));
    const Sizes sizes{*least + reserve, alone_.capacity > Bytes(0) ? less : most + reserve,
                      is_known ? needs_ + reserve : Bytes(0)};
    if (sizes.enough <= sizes.too_little) return;
    made_.capacity = NoteLeast(
        sizes, Meaning("more memory, to within 1 %"), [&](Bytes size) { return Capacities(size); },
        [&](const PlanFix& fix) {
          return job_.memory.capacity.size() < 2 ? fix.largest_peak + reserve : most + reserve;
        });
  }

  // Of a change, with what is set besides.
  std::string Meaning(const std::string& change) const {
    return besides_.empty()
               ? change
               : WithAuto(absl::StrCat(change, ", with all ways to save memory together"));
  }
  std::string WithAuto(const std::string& meaning) const {
    return absl::StrCat(meaning, query_.request.strategy.empty() ? "" : ", in place of --strategy");
  }

  const FixQuery& query_;
  const StudiedPlan& misfit_;
  const JobConfig& job_;
  const Settings besides_;
  const FixesOfSort alone_;
  Bytes needs_;
  FixesOfSort made_;
};

absl::string_view KeyOf(absl::string_view setting) { return setting.substr(0, setting.find('=')); }

bool Sets(const PlanFix& fix, absl::string_view key) {
  return absl::c_any_of(fix.settings,
                        [&](absl::string_view setting) { return KeyOf(setting) == key; });
}

// Before that which sets the same, or is of larger devices, without strategy auto.
void Insert(PlanFix with_auto, std::vector<PlanFix>& fixes) {
  const auto sets_all = [&](const PlanFix& fix) {
    return absl::c_all_of(with_auto.settings, [&](absl::string_view setting) {
      return setting == kAuto || Sets(fix, KeyOf(setting));
    });
  };
  const auto place = absl::c_find_if(
      fixes, [&](const PlanFix& fix) { return fix.devices > Bytes(0) || sets_all(fix); });
  fixes.insert(place, std::move(with_auto));
}

}  // namespace

FixesOfSort SearchFixes(int sort, const FixQuery& query) {
  return FixSearch(query).Search(FixSearch::Sorts()[sort], NeededByMisfit(query.misfit.misfit));
}

void AddFixesWithAuto(int sort, const FixQuery& query, const FixesOfSort& anew,
                      FixesOfSort& alone) {
  const FixSearch::Sort searched = FixSearch::Sorts()[sort];
  if (!anew.auto_is_in_vain || !FixSearch::HasSizes(searched)) return;
  FixesOfSort more =
      FixSearch(query, {std::string(kAuto)}, alone).Search(searched, anew.auto_needs);
  alone.in_vain.insert(alone.in_vain.end(), more.in_vain.begin(), more.in_vain.end());
  if (more.enough.has_value()) alone.enough = std::move(more.enough);
  for (PlanFix& fix : more.fixes) Insert(std::move(fix), alone.fixes);
}

}  // namespace siphon
