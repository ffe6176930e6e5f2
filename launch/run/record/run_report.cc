#include "launch/run/record/run_report.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/profile/predict_step.h"
#include "launch/run/record/compare_step.h"

namespace siphon {
namespace {

Nanos BusyTime(const WorkerTimeline& worker) {
  Nanos busy;
  for (const Interval& interval : worker) {
    if (interval.kind == IntervalKind::kBusy) busy += interval.end - interval.begin;
  }
  return busy;
}

double BubbleOf(const std::vector<WorkerTimeline>& workers) {
  const double all =
      static_cast<double>(EndOf(workers).value) * static_cast<double>(workers.size());
  if (all <= 0) return 0;
  Nanos busy;
  for (const WorkerTimeline& worker : workers) busy += BusyTime(worker);
  return 1 - static_cast<double>(busy.value) / all;
}

PageTable WorkerTable(const SimulatedStep& predicted, const std::vector<Bytes>& capacity,
                      const MeasuredStep& measured) {
  PageTable table{.title = "workers",
                  .header = {"worker", "predicted busy", "measured busy", "predicted peak",
                             "measured peak", "capacity"}};
  for (size_t worker = 0; worker < measured.workers.size(); ++worker) {
    const bool known = worker < predicted.workers.size();
    table.rows.push_back(
        {absl::StrCat(worker), known ? FormatNanos(BusyTime(predicted.workers[worker])) : "-",
         FormatNanos(BusyTime(measured.workers[worker])),
         known ? FormatBytes(Total(predicted.peak[worker])) : "-",
         worker < measured.peaks.size() ? FormatBytes(measured.peaks[worker]) : "-",
         worker < capacity.size() && capacity[worker] > Bytes(0) ? FormatBytes(capacity[worker])
                                                                 : "-"});
  }
  return table;
}

// Measured over predicted, kind by kind.
PageTable KindTable(const std::vector<KindTime>& kinds) {
  PageTable table{.title = "time of all workers together",
                  .header = {"what", "predicted", "measured", "difference"}};
  for (const KindTime& kind : kinds) {
    const double share = static_cast<double>(kind.Difference().value) /
                         static_cast<double>(std::max<int64_t>(1, kind.predicted.value));
    table.rows.push_back(
        {kind.name, FormatNanos(kind.predicted), FormatNanos(kind.measured),
         kind.predicted > Nanos(0) ? absl::StrFormat("%+.1f %%", 100 * share) : "-"});
  }
  return table;
}

}  // namespace

TimelinePage RunReport(const PlanText& plan, const SimulatedStep& predicted,
                       const MeasuredStep& step) {
  const std::vector<WorkerTimeline>& measured = step.workers;
  const bool comparable = plan.costs != kUnitCosts;
  const Nanos end = EndOf(measured);
  TimelinePage page{.title = absl::StrCat(plan.model, ", ", plan.schedule, ": step ", step.step)};
  page.facts = {{"measured step", FormatNanos(end)},
                {"measured bubble_fraction", FormatPercent(BubbleOf(measured))}};
  if (comparable) {
    page.lead = absl::StrCat("Predicted with costs ", plan.costs, ".");
    page.facts.emplace_back("predicted step", FormatNanos(predicted.step_time));
    const double deviation = static_cast<double>((predicted.step_time - end).value) /
                             static_cast<double>(std::max<int64_t>(1, end.value));
    page.facts.emplace_back("deviation", absl::StrFormat("%+.1f %%", 100 * deviation));
  } else {
    page.lead =
        "No profile was given (pipeline.profile, made by siphon profile): the predicted step has "
        "the schedule's shape with unit times.";
  }
  page.facts.emplace_back("predicted bubble_fraction", FormatPercent(predicted.bubble_fraction));
  if (comparable) {
    page.pictures.push_back(ComparisonOf(predicted, measured, "predicted and measured"));
  } else {
    TimelinePicture picture{.title = "measured", .span = end};
    for (size_t worker = 0; worker < measured.size(); ++worker) {
      picture.rows.push_back({absl::StrCat("worker ", worker), measured[worker]});
    }
    page.pictures.push_back(std::move(picture));
    page.pictures.push_back(PictureOf(predicted, CapacityOf(plan), "predicted, unit times"));
  }
  if (comparable) {
    const std::vector<KindTime> kinds = CompareKinds(predicted, measured);
    if (const KindTime* largest = LargestDifference(kinds); largest != nullptr) {
      page.facts.emplace_back("largest difference",
                              absl::StrCat(largest->name, ", ", FormatNanos(largest->measured),
                                           " for ", FormatNanos(largest->predicted)));
    }
    page.tables.push_back(KindTable(kinds));
  }
  page.tables.push_back(WorkerTable(predicted, CapacityOf(plan), step));
  return page;
}

}  // namespace siphon
