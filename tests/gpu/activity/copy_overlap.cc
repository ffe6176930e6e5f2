#include "tests/gpu/activity/copy_overlap.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace siphon {
namespace {

using Kind = DeviceActivity::Kind;
using Engine = DeviceActivity::Engine;
using Interval = std::pair<Nanos, Nanos>;  // from, to

// Apart from each other, in order.
std::vector<Interval> Union(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> apart;
  for (const Interval& interval : intervals) {
    if (!apart.empty() && interval.first <= apart.back().second) {
      apart.back().second = std::max(apart.back().second, interval.second);
    } else {
      apart.push_back(interval);
    }
  }
  return apart;
}

Nanos Length(const std::vector<Interval>& apart) {
  Nanos length;
  for (const auto& [from, to] : apart) length += to - from;
  return length;
}

Nanos Common(const std::vector<Interval>& one, const std::vector<Interval>& other) {
  Nanos common;
  for (size_t a = 0, b = 0; a < one.size() && b < other.size();) {
    const Nanos from = std::max(one[a].first, other[b].first);
    const Nanos to = std::min(one[a].second, other[b].second);
    if (from < to) common += to - from;
    ++(one[a].second < other[b].second ? a : b);
  }
  return common;
}

// What leaves a device or comes back, where it matters which engine does it.
bool Swaps(const CopySummary& summary) {
  return summary.largest >= kTensorCopy &&
         (summary.kind == Kind::kToDevice || summary.kind == Kind::kToHost ||
          summary.kind == Kind::kToPeer);
}

double PartBesideKernels(const CopySummary& summary) {
  return summary.busy == Nanos(0) ? 0
                                  : static_cast<double>(summary.beside_kernels.value) /
                                        static_cast<double>(summary.busy.value);
}

std::string Described(const CopySummary& summary) {
  return absl::StrCat(NameOf(summary.kind), ", device ", summary.device, ", channel ",
                      summary.channel);
}

}  // namespace

std::vector<CopySummary> SummariseCopies(const std::vector<DeviceActivity>& activities) {
  std::map<int, std::vector<Interval>> kernels;  // of each device
  std::set<std::pair<int, int>> work_streams;    // device, stream
  for (const DeviceActivity& activity : activities) {
    if (activity.kind == Kind::kKernel) work_streams.emplace(activity.device, activity.stream);
  }
  using Key = std::tuple<int, Kind, int, Engine>;
  std::map<Key, std::pair<CopySummary, std::vector<Interval>>> copies;
  for (const DeviceActivity& activity : activities) {
    const Interval interval = {activity.start, activity.end};
    if (activity.kind == Kind::kKernel) {
      kernels[activity.device].push_back(interval);
      continue;
    }
    if (work_streams.count({activity.device, activity.stream}) > 0) continue;
    auto& [summary, intervals] =
        copies[{activity.device, activity.kind, activity.channel, activity.engine}];
    ++summary.copies;
    summary.bytes += activity.bytes;
    summary.largest = std::max(summary.largest, activity.bytes);
    intervals.push_back(interval);
  }
  for (auto& [device, intervals] : kernels) intervals = Union(std::move(intervals));
  std::vector<CopySummary> summaries;
  for (auto& [key, copied] : copies) {
    auto& [summary, intervals] = copied;
    std::tie(summary.device, summary.kind, summary.channel, summary.engine) = key;
    const std::vector<Interval> apart = Union(std::move(intervals));
    summary.busy = Length(apart);
    summary.beside_kernels = Common(apart, kernels[summary.device]);
    summaries.push_back(summary);
  }
  return summaries;
}

std::string TableOf(const std::vector<CopySummary>& summaries) {
  std::string table =
      "| copies | device | channel | by | number | bytes | largest | time | GB/s | beside kernels "
      "|\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (const CopySummary& summary : summaries) {
    absl::StrAppendFormat(
        &table, "| %s | %d | %d | %s | %d | %s | %s | %.3f ms | %.1f | %.0f %% |\n",
        NameOf(summary.kind), summary.device, summary.channel, NameOf(summary.engine),
        summary.copies, FormatBytes(summary.bytes), FormatBytes(summary.largest),
        static_cast<double>(summary.busy.value) / 1e6,
        summary.busy == Nanos(0)
            ? 0.0
            : static_cast<double>(summary.bytes.value) / static_cast<double>(summary.busy.value),
        100 * PartBesideKernels(summary));
  }
  return table;
}

absl::Status CheckCopies(const std::vector<CopySummary>& summaries) {
  std::vector<std::string> problems;
  bool any = false;
  for (const CopySummary& summary : summaries) {
    if (!Swaps(summary)) continue;
    any = true;
    if (summary.engine != Engine::kCopy) {
      problems.push_back(absl::StrCat(Described(summary), ": by ", NameOf(summary.engine)));
    }
    if (PartBesideKernels(summary) < kLeastBesideKernels) {
      problems.push_back(absl::StrFormat(
          "%s: %.0f %% of its time beside kernels, at least %.0f %% "
          "are expected",
          Described(summary), 100 * PartBesideKernels(summary), 100 * kLeastBesideKernels));
    }
  }
  if (!any) problems.push_back("no tensor left a device or came back");
  if (problems.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrJoin(problems, "\n"));
}

}  // namespace siphon
