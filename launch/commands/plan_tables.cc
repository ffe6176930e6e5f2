#include "launch/commands/plan_tables.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/output/figure_text.h"
#include "planner/placement_bytes.h"

namespace siphon {
namespace {

int DeviceOf(const PlanText& plan, size_t worker) {
  const std::vector<DeviceId>& devices = plan.mapping.device_of_worker;
  return devices.empty() ? static_cast<int>(worker) : devices[worker].value;
}

// Of the worker's stages; workers of replicas have those of the first.
PlacementBytes PlacedBy(const StudiedPlan& studied, const std::vector<PlacementBytes>& stages,
                        size_t worker) {
  std::vector<PlacementBytes> own;
  const int of = static_cast<int>(worker) % WorkerCount(studied.plan.training);
  for (const StageId stage : StagesOf(studied.plan.training, WorkerId(of))) {
    own.push_back(stages[stage.value]);
  }
  return Sum(own);
}

std::string StagesText(const StudiedPlan& studied, size_t worker) {
  const int of = static_cast<int>(worker) % WorkerCount(studied.plan.training);
  return absl::StrJoin(
      StagesOf(studied.plan.training, WorkerId(of)), " ",
      [](std::string* text, StageId stage) { absl::StrAppend(text, stage.value); });
}

// What is somewhere while another thing is not is there at different times.
std::string AtOnce(Bytes peak, Bytes sum) {
  return sum > peak ? absl::StrCat(FormatBytes(peak), " at once, of ", FormatBytes(sum), " in sum")
                    : FormatBytes(peak);
}

// What is there beside what is parked has a reason of its own.
std::string OnHost(Bytes peak, Bytes parked, const MemoryPlan& plan) {
  if (peak <= parked) return AtOnce(peak, parked);
  const bool steps = absl::c_any_of(
      plan.stages, [](const StagePlan& stage) { return stage.update == UpdatePlace::kHost; });
  const std::string some =
      parked == Bytes(0) ? "" : absl::StrCat(", ", FormatBytes(peak - parked), " of it");
  return absl::StrCat(FormatBytes(peak), some, " for ",
                      steps ? "optimizer steps there" : "copies on their way");
}

// Each drive that holds anything, with the workers that swap to it.
std::vector<std::vector<std::string>> DriveRows(const StudiedPlan& studied) {
  const Topology& topology = studied.problem.topology;
  const std::vector<PlacementBytes> stages = BytesByPlacement(studied.plan);
  std::vector<std::vector<std::string>> rows;
  for (int drive = 0; drive < static_cast<int>(topology.drives.size()); ++drive) {
    const std::string name = absl::StrCat("drive ", drive);
    const Bytes peak = HeldBy(studied, name);
    if (peak == Bytes(0)) continue;
    Bytes sum;
    std::vector<size_t> workers;
    std::vector<int> devices;
    for (size_t worker = 0; worker < studied.shown().peak.size(); ++worker) {
      const int device = DeviceOf(studied.plan, worker);
      const Bytes bytes =
          PlacedBy(studied, stages, worker)[static_cast<size_t>(Placement::kNvmeSwap)];
      if (bytes == Bytes(0) || DriveOf(topology, DeviceId(device)) != drive) continue;
      sum += bytes;
      workers.push_back(worker);
      devices.push_back(device);
    }
    rows.push_back(
        {absl::StrJoin(workers, " "), absl::StrJoin(devices, " "), name, AtOnce(peak, sum)});
  }
  return rows;
}

// Of a plan that does not fit, what there is all the same.
std::vector<std::string> PlanColumn(const StudiedPlan& studied) {
  constexpr absl::string_view kNone = "-";
  const bool fits = studied.step.has_value();
  Bytes fullest;
  for (size_t worker = 0; worker < studied.shown().peak.size(); ++worker) {
    fullest = std::max(fullest, PeakOf(studied.shown(), worker));
  }
  const auto if_fits = [&](std::string text) {
    return fits ? std::move(text) : std::string(kNone);
  };
  const std::optional<double> gap = GapOf(studied);
  const bool bounded = !studied.bound.cannot_fit.has_value();
  std::vector<std::string> column = {
      fits ? "yes" : "no",
      studied.strategy,
      if_fits(FormatNanos(studied.shown().step_time)),
      if_fits(FigureText(TokensPerSecond(studied).value_or(0))),
      bounded ? FormatNanos(studied.bound.step_time) : std::string(kNone),
      gap.has_value() ? FormatPercent(*gap) : std::string(kNone),
      if_fits(FormatPercent(studied.shown().bubble_fraction)),
      if_fits(FormatBytes(fullest))};
  const PlacementBytes placed = Sum(BytesByPlacement(studied.plan));
  for (const Bytes bytes : placed) {
    column.push_back(bytes == Bytes(0) || !fits ? std::string(kNone) : FormatBytes(bytes));
  }
  return column;
}

}  // namespace

PageTable WorkerTable(const StudiedPlan& studied) {
  const std::vector<PlacementBytes> stages = BytesByPlacement(studied.plan);
  const PlacementBytes all = Sum(stages);
  const bool limited = !studied.problem.capacity.empty();
  const Topology& topology = studied.problem.topology;
  const bool several = ServerCount(topology) > 1;
  std::vector<std::string> header = {"worker"};
  if (several) header.emplace_back("server");
  for (const char* column : {"device", "stages", "peak"}) header.emplace_back(column);
  if (limited) header.emplace_back("capacity");
  std::vector<size_t> used;
  for (size_t placement = 0; placement < all.size(); ++placement) {
    if (all[placement] == Bytes(0)) continue;
    used.push_back(placement);
    header.emplace_back(PlacementName(static_cast<Placement>(placement)));
  }
  std::vector<std::vector<std::string>> rows;
  for (size_t worker = 0; worker < studied.kept.peak.size(); ++worker) {
    std::vector<std::string>& row = rows.emplace_back();
    const int device = DeviceOf(studied.plan, worker);
    row = {absl::StrCat(worker)};
    if (several) row.push_back(absl::StrCat(ServerOf(topology, DeviceId(device))));
    row.push_back(absl::StrCat(device));
    row.push_back(StagesText(studied, worker));
    row.push_back(FormatBytes(PeakOf(studied.shown(), worker)));
    if (limited) row.push_back(FormatBytes(CapacityOf(studied, worker)));
    const PlacementBytes placed = PlacedBy(studied, stages, worker);
    for (const size_t placement : used) {
      row.push_back(placed[placement] == Bytes(0) ? "-" : FormatBytes(placed[placement]));
    }
  }
  return {.header = std::move(header), .rows = std::move(rows)};
}

PageTable ParkingTable(const StudiedPlan& studied) {
  std::vector<std::vector<std::string>> rows;
  for (const ParkedBytes& parked : ParkedBytesOf(studied.plan)) {
    rows.push_back({absl::StrCat(parked.worker), absl::StrCat(parked.owner.value),
                    absl::StrCat(parked.lender.value), FormatBytes(parked.bytes)});
  }
  if (studied.shown().host_peak > Bytes(0)) {
    const Bytes sum =
        Sum(BytesByPlacement(studied.plan))[static_cast<size_t>(Placement::kHostSwap)];
    rows.push_back({"all", "-",
                    ServerCount(studied.problem.topology) > 1 ? "a server's host" : "host",
                    OnHost(studied.shown().host_peak, sum, studied.plan.memory)});
  }
  for (std::vector<std::string>& row : DriveRows(studied)) rows.push_back(std::move(row));
  return {.title = "parked elsewhere",
          .header = {"worker", "its device", "parked with", "bytes"},
          .rows = std::move(rows)};
}

PageTable WhatIfTable(const PlanReport& report) {
  if (report.what_ifs.empty()) return {};
  std::vector<std::string> header = {"what if", "as it is"};
  std::vector<std::string> names = {"fits",        "strategy", "step time", "tokens/s",
                                    "lower bound", "gap",      "bubble",    "fullest worker"};
  for (int placement = 0; placement < kPlacements; ++placement) {
    names.emplace_back(PlacementName(static_cast<Placement>(placement)));
  }
  std::vector<std::vector<std::string>> rows;
  for (std::string& name : names) rows.push_back({std::move(name)});
  const auto add = [&](const StudiedPlan& studied) {
    std::vector<std::string> column = PlanColumn(studied);
    for (size_t row = 0; row < rows.size(); ++row) rows[row].push_back(std::move(column[row]));
  };
  add(report.plan);
  for (const WhatIf& what_if : report.what_ifs) {
    header.push_back(what_if.setting);
    add(what_if.plan);
  }
  return {.header = std::move(header), .rows = std::move(rows)};
}

std::vector<ParkedBytes> ParkedBytesOf(const PlanText& plan) {
  const std::vector<std::vector<int>> goes = CopiesThatGo(plan.training, plan.memory);
  std::map<std::pair<int, int>, Bytes> parked;
  for (size_t stage = 0; stage < plan.memory.stages.size(); ++stage) {
    const int worker = plan.training.worker_of_stage[stage].value;
    const std::vector<PlannedGroup>& groups = plan.memory.stages[stage].groups;
    for (size_t group = 0; group < groups.size(); ++group) {
      for (const Stripe& stripe : groups[group].choice.stripes) {
        parked[{worker, stripe.lender.value}] += stripe.bytes * goes[stage][group];
      }
    }
  }
  std::vector<ParkedBytes> list;
  for (const auto& [key, bytes] : parked) {
    list.push_back({key.first, DeviceId(DeviceOf(plan, static_cast<size_t>(key.first))),
                    DeviceId(key.second), bytes});
  }
  return list;
}

}  // namespace siphon
