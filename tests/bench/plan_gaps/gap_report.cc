#include "tests/bench/plan_gaps/gap_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/drafts/maps/map_draft.h"

namespace siphon {
namespace {

constexpr double kParts[] = {0, 0.25, 0.5, 0.75, 0.9, 1};
constexpr size_t kWorst = 10;

std::string QuantilesLine(const std::string& what, const std::vector<double>& values,
                          const std::string& unit) {
  std::string line = absl::StrFormat("%-22s", what);
  if (values.empty()) return line + " none\n";
  for (const double part : kParts) {
    absl::StrAppendFormat(&line, " %8.2f", Quantile(values, part));
  }
  return absl::StrCat(line, " ", unit, "\n");
}

// Bars of gaps in percent; the last one has no end.
std::string Histogram(const std::vector<double>& gaps) {
  constexpr double kEdges[] = {0, 0.1, 1, 2, 3, 5, 8, 12, 20, 50};
  constexpr size_t kBars = std::size(kEdges);
  std::vector<int> counts(kBars, 0);
  for (const double gap : gaps) {
    size_t bar = kBars - 1;
    while (bar > 0 && gap < kEdges[bar]) --bar;
    ++counts[bar];
  }
  std::string text;
  for (size_t bar = 0; bar < kBars; ++bar) {
    const std::string end =
        bar + 1 < kBars ? absl::StrFormat("%5.1f %%", kEdges[bar + 1]) : "  more";
    absl::StrAppendFormat(&text, "  %5.1f to %-8s %4d %s\n", kEdges[bar], end, counts[bar],
                          std::string(static_cast<size_t>(counts[bar]), '*'));
  }
  return text;
}

// The step time of the best of the others, relative to auto's.
std::string BestOther(const GapOutcome& outcome) {
  const StrategyOutcome* best = nullptr;
  for (const StrategyOutcome& other : outcome.others) {
    if (!other.step_time.has_value()) continue;
    if (best == nullptr || *other.step_time < *best->step_time) best = &other;
  }
  return best == nullptr
             ? "no other fits"
             : absl::StrCat("next ", best->strategy, " ", FormatNanos(*best->step_time));
}

std::string Worst(std::vector<const GapOutcome*> fitting) {
  std::sort(fitting.begin(), fitting.end(),
            [](const GapOutcome* a, const GapOutcome* b) { return *a->Gap() > *b->Gap(); });
  std::string text;
  for (size_t place = 0; place < std::min(kWorst, fitting.size()); ++place) {
    const GapOutcome& one = *fitting[place];
    absl::StrAppendFormat(&text, "  %6.2f %%  %-36s step %s, bound %s, path %s; %s; binds: %s\n",
                          100 * *one.Gap(), one.name, FormatNanos(*one.planned.step_time),
                          FormatNanos(one.bound.step_time), FormatNanos(one.longest_path),
                          BestOther(one), one.bound.reason);
  }
  return text;
}

std::string Unfit(const std::vector<GapOutcome>& outcomes) {
  std::string text;
  for (const GapOutcome& one : outcomes) {
    if (one.Gap().has_value()) continue;
    const std::string why = one.bound.cannot_fit.has_value()
                                ? absl::StrCat("proven: ", *one.bound.cannot_fit)
                                : std::string("not proven");
    absl::StrAppend(&text, "  ", one.name, " (", why, ")\n");
  }
  return text;
}

}  // namespace

double Quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(part * static_cast<double>(values.size()));
  return values[static_cast<size_t>(std::max(1.0, rank)) - 1];
}

std::string GapReport(const std::vector<GapOutcome>& outcomes) {
  std::vector<const GapOutcome*> fitting;
  std::vector<double> gaps;
  std::vector<double> saving_gaps;  // of instances whose bound is above the schedule's longest path
  std::vector<double> seconds;
  std::vector<double> bound_seconds;
  std::vector<double> map_gaps;
  int mapped = 0;
  std::vector<std::string> lost;
  for (const GapOutcome& one : outcomes) {
    for (const std::string& winner : one.Winners()) lost.push_back(one.name + " to " + winner);
    seconds.push_back(one.planned.seconds);
    bound_seconds.push_back(one.bound_seconds);
    if (!one.Gap().has_value()) continue;
    fitting.push_back(&one);
    if (one.map.has_value()) ++mapped;
    const std::optional<double> map_gap = one.map ? GapOf(*one.map) : std::nullopt;
    if (map_gap.has_value()) map_gaps.push_back(100 * *map_gap);
    gaps.push_back(100 * *one.Gap());
    if (one.bound.step_time > one.longest_path) saving_gaps.push_back(gaps.back());
  }
  std::string text =
      absl::StrFormat("%d instances, %d fit; auto lost %d times to another strategy\n",
                      outcomes.size(), fitting.size(), lost.size());
  for (const std::string& one : lost) absl::StrAppend(&text, "  lost: ", one, "\n");
  absl::StrAppendFormat(&text, "%-22s %8s %8s %8s %8s %8s %8s\n", "", "least", "quarter", "median",
                        "3/4", "90 %", "worst");
  absl::StrAppend(&text, QuantilesLine("gap", gaps, "%"),
                  QuantilesLine("gap, bound above path", saving_gaps, "%"),
                  QuantilesLine("gap of the map alone", map_gaps, "%"),
                  QuantilesLine("auto plans in", seconds, "s of processor time"),
                  QuantilesLine("bound takes", bound_seconds, "s of processor time"));
  absl::StrAppendFormat(&text, "maps: %d searched, %d proven to be the best for their plan\n",
                        mapped, std::count(map_gaps.begin(), map_gaps.end(), 0));
  absl::StrAppend(&text, "gaps:\n", Histogram(gaps), "largest gaps:\n", Worst(fitting),
                  "do not fit:\n", Unfit(outcomes));
  return text;
}

}  // namespace siphon
