#include "planner/plan_difference.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/placement_bytes.h"

namespace siphon {
namespace {

constexpr absl::string_view kNothing = "-";

std::string Text(Nanos time) { return FormatNanos(time); }
std::string Text(Bytes bytes) { return FormatBytes(bytes); }

std::string Change(int64_t before, int64_t after) {
  if (before == after || before == 0) return "";
  const double ratio = static_cast<double>(after) / static_cast<double>(before) - 1;
  return absl::StrFormat("%+.1f %%", 100 * ratio);
}

// Rows in the order in which they are added.
class Rows {
 public:
  void AddText(std::string what, std::string before, std::string after) {
    if (before.empty()) before = std::string(kNothing);
    if (after.empty()) after = std::string(kNothing);
    rows_.push_back({std::move(what), std::move(before), std::move(after), ""});
  }

  // 0 means that nothing is known.
  template <typename Quantity>
  void AddKnown(std::string what, Quantity before, Quantity after) {
    AddText(std::move(what), before.value == 0 ? "" : Text(before),
            after.value == 0 ? "" : Text(after));
    if (before.value != 0 && after.value != 0) {
      rows_.back().change = Change(before.value, after.value);
    }
  }

  void AddBytes(std::string what, Bytes before, Bytes after) {
    AddText(std::move(what), Text(before), Text(after));
    rows_.back().change = Change(before.value, after.value);
  }

  std::vector<PlanDifference> Take() && { return std::move(rows_); }

 private:
  std::vector<PlanDifference> rows_;
};

template <typename Value>
Value At(const std::vector<Value>& values, size_t index) {
  return index < values.size() ? values[index] : Value();
}

std::string Shape(const PlanText& plan) {
  const Schedule& schedule = plan.training;
  std::string text = absl::StrCat(schedule.microbatches, " x ", plan.microbatch);
  if (schedule.replicas > 1) absl::StrAppend(&text, " x ", schedule.replicas, " replicas");
  return text;
}

Bytes LargestPeak(const PlanText& plan) {
  const std::vector<Bytes>& peaks = plan.predicted.peak;
  return peaks.empty() ? Bytes(0) : *std::max_element(peaks.begin(), peaks.end());
}

void AddJob(const PlanText& before, const PlanText& after, Rows& rows) {
  rows.AddText("schedule", before.schedule, after.schedule);
  rows.AddText("microbatches x size", Shape(before), Shape(after));
  rows.AddText("workers", absl::StrCat(before.workers.size()), absl::StrCat(after.workers.size()));
  rows.AddText("strategy", before.strategy, after.strategy);
  rows.AddKnown("step time", before.predicted.step_time, after.predicted.step_time);
  rows.AddKnown("lower bound", before.predicted.lower_bound, after.predicted.lower_bound);
  rows.AddKnown("largest peak", LargestPeak(before), LargestPeak(after));
}

void AddWorkers(const PlanText& before, const PlanText& after, Rows& rows) {
  const size_t peaks = std::max(before.predicted.peak.size(), after.predicted.peak.size());
  for (size_t worker = 0; worker < peaks; ++worker) {
    rows.AddKnown(absl::StrCat("peak of worker ", worker), At(before.predicted.peak, worker),
                  At(after.predicted.peak, worker));
  }
  const size_t workers = std::max(before.workers.size(), after.workers.size());
  for (size_t worker = 0; worker < workers; ++worker) {
    rows.AddKnown(absl::StrCat("capacity of worker ", worker), At(before.workers, worker).capacity,
                  At(after.workers, worker).capacity);
  }
}

void AddPlacements(const PlanText& before, const PlanText& after, Rows& rows) {
  const PlacementBytes then = Sum(BytesByPlacement(before));
  const PlacementBytes now = Sum(BytesByPlacement(after));
  for (size_t index = 0; index < then.size(); ++index) {
    rows.AddBytes(absl::StrCat("tensors: ", PlacementName(static_cast<Placement>(index))),
                  then[index], now[index]);
  }
}

// What each device may hold of others' tensors, what passes as often as it is live and goes there.
std::map<DeviceId, Bytes> Lent(const PlanText& plan) {
  std::map<DeviceId, Bytes> lent;
  const std::vector<std::vector<int>> goes = CopiesThatGo(plan.training, plan.memory);
  for (size_t stage = 0; stage < plan.memory.stages.size(); ++stage) {
    const std::vector<PlannedGroup>& groups = plan.memory.stages[stage].groups;
    for (size_t group = 0; group < groups.size(); ++group) {
      for (const Stripe& stripe : groups[group].choice.stripes) {
        lent[stripe.lender] += stripe.bytes * goes[stage][group];
      }
    }
  }
  return lent;
}

void AddLenders(const PlanText& before, const PlanText& after, Rows& rows) {
  std::map<DeviceId, std::pair<Bytes, Bytes>> lent;
  for (const auto& [device, bytes] : Lent(before)) lent[device].first = bytes;
  for (const auto& [device, bytes] : Lent(after)) lent[device].second = bytes;
  for (const auto& [device, bytes] : lent) {
    rows.AddBytes(absl::StrCat("lent by device ", device.value), bytes.first, bytes.second);
  }
}

std::string Devices(const PlanText& plan) {
  const auto append = [](std::string* out, DeviceId device) { absl::StrAppend(out, device.value); };
  return absl::StrJoin(plan.mapping.device_of_worker, " ", append);
}

std::string StageText(const PlanText& plan, size_t stage) {
  if (stage >= plan.stages.size()) return "";
  const PlanStage& one = plan.stages[stage];
  return absl::StrCat("layers ", one.layers.begin, " to ", one.layers.end - 1, " on worker ",
                      one.worker.value);
}

void AddPlaces(const PlanText& before, const PlanText& after, Rows& rows) {
  rows.AddText("devices of workers", Devices(before), Devices(after));
  const size_t stages = std::max(before.stages.size(), after.stages.size());
  for (size_t stage = 0; stage < stages; ++stage) {
    rows.AddText(absl::StrCat("stage ", stage), StageText(before, stage), StageText(after, stage));
  }
}

}  // namespace

std::vector<PlanDifference> ComparePlans(const PlanText& before, const PlanText& after) {
  Rows rows;
  AddJob(before, after, rows);
  AddWorkers(before, after, rows);
  AddPlacements(before, after, rows);
  AddLenders(before, after, rows);
  AddPlaces(before, after, rows);
  return std::move(rows).Take();
}

std::vector<PlanDifference> DifferingRows(const std::vector<PlanDifference>& rows) {
  std::vector<PlanDifference> differing;
  for (const PlanDifference& row : rows) {
    if (row.before != row.after || !row.change.empty()) differing.push_back(row);
  }
  return differing;
}

}  // namespace siphon
