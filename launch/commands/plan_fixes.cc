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

TriedFixes FindFixes(PlanRequest request, const StudiedPlan& misfit,
                     const std::function<void(absl::string_view)>& say) {
  request.news = nullptr;  // of several searches at once
  const std::function<bool(const PlanFix&)> enough = [](const PlanFix&) { return false; };
  const FixQuery query{request, misfit, say, enough};
  std::array<FixesOfSort, kFixSorts> found;
  RunTogether(kFixSorts, [&](int sort) { found[sort] = SearchFixes(sort, query); });
  RunTogether(kFixSorts,
              [&](int sort) { AddFixesWithAuto(sort, query, found.front(), found[sort]); });
  TriedFixes tried;
  for (const FixesOfSort& of_sort : found) {
    tried.fixes.insert(tried.fixes.end(), of_sort.fixes.begin(), of_sort.fixes.end());
    tried.in_vain.insert(tried.in_vain.end(), of_sort.in_vain.begin(), of_sort.in_vain.end());
  }
  return tried;
}

std::optional<PlanFix> FindFix(const PlanRequest& request, const StudiedPlan& misfit,
                               const std::function<void(absl::string_view)>& say,
                               const std::function<bool(const PlanFix&)>& enough) {
  const FixQuery query{request, misfit, say, enough};
  FixesOfSort anew;
  for (int sort = 0; sort < kFixSorts; ++sort) {
    FixesOfSort found = SearchFixes(sort, query);
    if (sort == 0) anew = found;
    AddFixesWithAuto(sort, query, anew, found);
    if (found.enough.has_value()) return std::move(found.enough);
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
      ChangeText(fix), "  (", fix.meaning, "; at most ", FormatNanos(fix.step_time), " a step, ",
      FormatBytes(fix.largest_peak), " on the fullest worker",
      IsOfHost(fix) ? absl::StrCat(", ", FormatBytes(fix.host_peak), " on the host") : "", ")");
}

std::string FixesText(const TriedFixes& tried) {
  std::string text;
  for (const PlanFix& fix : tried.fixes) {
    absl::StrAppend(&text, &fix == tried.fixes.data() ? "smallest change that fits: " : "or:  ",
                    FixText(fix), "\n");
  }
  if (tried.in_vain.empty()) return text;
  return absl::StrCat(text, "tried in vain: ", InVainText(tried.in_vain), "\n");
}

std::string InVainText(const std::vector<std::vector<std::string>>& in_vain) {
  return absl::StrJoin(in_vain, ", ", [](std::string* text, const auto& settings) {
    for (size_t index = 0; index < settings.size(); ++index) {
      absl::StrAppend(text, index == 0 ? "" : index == 1 ? " with " : " and ", settings[index]);
    }
  });
}

std::string SettingsText(const std::vector<std::string>& settings) {
  return absl::StrCat("--set ", absl::StrJoin(settings, " --set "));
}

}  // namespace siphon
