#include "launch/commands/try_fix.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launch/commands/least_size.h"
#include "planner/units.h"

namespace siphon {
namespace {

constexpr absl::string_view kPlanKey = "memory.plan";
constexpr absl::string_view kNoPlan = "memory.plan=none";

bool HasKey(const std::vector<std::string>& settings, absl::string_view key) {
  return absl::c_any_of(settings, [&](const std::string& setting) {
    return absl::StartsWith(setting, absl::StrCat(key, "="));
  });
}

// 0: those of the topology will do, or no more is known of them.
Bytes DevicesNeeded(const StudiedPlan& misfit, const JobConfig& job) {
  const Bytes has = misfit.device_memory;
  const Bytes asked = LargestCapacity(job);
  return has > Bytes(0) && asked > has ? asked : Bytes(0);
}

}  // namespace

std::vector<std::string> SettingsOfTry(const StudiedPlan& misfit,
                                       std::vector<std::string> settings) {
  const bool names_file = !misfit.job.memory.plan.empty() && !HasKey(settings, kPlanKey);
  if (names_file) settings.emplace_back(kNoPlan);
  return settings;
}

Bytes NeededByMisfit(absl::string_view misfit) {
  constexpr absl::string_view kNeeds = " needs ";
  // As a search says it, and as the memory model does (CheckFits).
  const size_t end = std::min(misfit.find(" at its fullest"), misfit.find(" at its peak"));
  const size_t begin = misfit.rfind(kNeeds, end);
  if (end == absl::string_view::npos || begin == absl::string_view::npos) return Bytes(0);
  return ParseBytes(misfit.substr(begin + kNeeds.size(), end - begin - kNeeds.size()))
      .value_or(Bytes(0));
}

Bytes ALittleMoreThan(Bytes needs) { return needs + Bytes(needs.value / kSizeExactness); }

bool LacksMemory(const StudiedPlan& misfit, size_t worker, Bytes needs) {
  const auto lacks = [&](size_t one) { return CapacityOf(misfit, one) < PeakOf(misfit.kept, one); };
  if (misfit.strategy != "keep") return lacks(worker);
  for (size_t one = 0; one < misfit.kept.peak.size(); ++one) {
    if (lacks(one)) return lacks(worker);
  }
  return CapacityOf(misfit, worker) <= ALittleMoreThan(needs);
}

std::string SizeText(Bytes bytes) {
  constexpr std::pair<int64_t, absl::string_view> kUnits[] = {{1 << 20, "MiB"}, {1 << 10, "KiB"}};
  for (const auto& [unit, name] : kUnits) {
    if (bytes.value % unit == 0) return absl::StrCat(bytes.value / unit, name);
  }
  return absl::StrCat(bytes.value, "B");
}

TriedFix TryFix(const PlanRequest& request, const StudiedPlan& misfit, const FixToTry& change) {
  PlanFix fix{.settings = SettingsOfTry(misfit, change.settings), .meaning = change.meaning};
  PlanRequest changed = WithSettings(request, fix.settings);
  changed.goal = change.goal;
  changed.bounds = false;
  changed.hopeless = HopelessJobs::kAreRefused;
  changed.devices = StatedMemory::kIsExceeded;
  const absl::StatusOr<StudiedPlan> studied = StudyPlan(changed);
  if (!studied.ok()) return {};
  if (!studied->step.has_value()) return {.is_job = true, .needs = NeededByMisfit(studied->misfit)};
  fix.step_time = studied->step->step_time;
  fix.host_peak = studied->step->host_peak;
  for (size_t worker = 0; worker < studied->step->peak.size(); ++worker) {
    fix.largest_peak = std::max(fix.largest_peak, PeakOf(*studied->step, worker));
  }
  if (HasKey(fix.settings, kCapacityKey)) fix.devices = DevicesNeeded(misfit, studied->job);
  return {.is_job = true, .fix = std::move(fix)};
}

}  // namespace siphon
