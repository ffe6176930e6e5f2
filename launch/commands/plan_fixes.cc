#include "launch/commands/plan_fixes.h"

#include <array>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/commands/fix_search.h"
#include "launch/process/run_together.h"

namespace siphon {
namespace {

bool IsOfHost(const PlanFix& fix) {
  return absl::c_any_of(fix.settings, [](const std::string& setting) {
    return absl::StartsWith(setting, kHostCapacityKey);
  });
}

std::string ChangeText(const PlanFix& fix) {
  if (fix.devices == Bytes(0)) return SettingsText(fix.settings);
  const std::string devices = absl::StrCat("devices of ", FormatBytes(fix.devices));
  return fix.settings.empty() ? absl::StrCat("needs ", devices)
                              : absl::StrCat(SettingsText(fix.settings), " on ", devices);
}

}  // namespace

std::vector<PlanFix> FindFixes(PlanRequest request, const StudiedPlan& misfit,
                               const std::function<void(absl::string_view)>& say) {
  request.news = nullptr;  // of several searches at once
  std::array<FixesOfSort, kFixSorts> found;
  RunTogether(kFixSorts, [&](int sort) {
    found[sort] = SearchFixes(sort, request, misfit, say, [](const PlanFix&) { return false; });
  });
  std::vector<PlanFix> fixes;
  for (const FixesOfSort& of_sort : found) {
    fixes.insert(fixes.end(), of_sort.fixes.begin(), of_sort.fixes.end());
  }
  return fixes;
}

std::optional<PlanFix> FindFix(const PlanRequest& request, const StudiedPlan& misfit,
                               const std::function<void(absl::string_view)>& say,
                               const std::function<bool(const PlanFix&)>& enough) {
  for (int sort = 0; sort < kFixSorts; ++sort) {
    FixesOfSort found = SearchFixes(sort, request, misfit, say, enough);
    if (found.has_enough) return std::move(found.fixes.back());
  }
  return std::nullopt;
}

std::string HostReason(const StudiedPlan& misfit, const std::vector<PlanFix>& fixes) {
  for (const PlanFix& fix : fixes) {
    if (!IsOfHost(fix)) continue;
    return absl::StrCat("; what binds is the host, which may hold ",
                        FormatBytes(misfit.job.memory.host_capacity), " (", kHostCapacityKey,
                        "): with more it fits");
  }
  return "";
}

std::string FixText(const PlanFix& fix) {
  return absl::StrCat(
      ChangeText(fix), "  (", fix.meaning, "; ", FormatNanos(fix.step_time), " a step, ",
      FormatBytes(fix.largest_peak), " on the fullest worker",
      IsOfHost(fix) ? absl::StrCat(", ", FormatBytes(fix.host_peak), " on the host") : "", ")");
}

std::string SettingsText(const std::vector<std::string>& settings) {
  return absl::StrCat("--set ", absl::StrJoin(settings, " --set "));
}

}  // namespace siphon
