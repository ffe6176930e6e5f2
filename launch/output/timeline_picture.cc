#include "launch/output/timeline_picture.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

std::vector<MemoryRow> MemoryRows(const SimulatedStep& step, const std::vector<Bytes>& capacity) {
  std::vector<MemoryRow> rows;
  for (size_t worker = 0; worker < step.memory.size(); ++worker) {
    // Replicas are alike.
    const Bytes limit = capacity.empty() ? Bytes() : capacity[worker % capacity.size()];
    rows.push_back({absl::StrCat("worker ", worker), step.memory[worker], limit});
  }
  return rows;
}

}  // namespace

Nanos EndOf(const std::vector<WorkerTimeline>& workers) {
  Nanos end;
  for (const WorkerTimeline& worker : workers) {
    if (!worker.empty()) end = std::max(end, worker.back().end);
  }
  return end;
}

TimelinePicture PictureOf(const SimulatedStep& step, const std::vector<Bytes>& capacity,
                          std::string title) {
  TimelinePicture picture{.title = std::move(title), .span = step.step_time};
  for (size_t worker = 0; worker < step.workers.size(); ++worker) {
    picture.rows.push_back({absl::StrCat("worker ", worker), step.workers[worker]});
  }
  for (const LaneTimeline& lane : step.lanes) {
    if (!lane.intervals.empty()) picture.rows.push_back({lane.name, lane.intervals});
  }
  picture.memory = MemoryRows(step, capacity);
  for (const auto& [name, curve, limit] : step.other_memory) {
    picture.elsewhere.push_back({name, curve, limit});
  }
  return picture;
}

TimelinePicture ComparisonOf(const SimulatedStep& predicted,
                             const std::vector<WorkerTimeline>& measured, std::string title) {
  TimelinePicture picture{.title = std::move(title),
                          .span = std::max(predicted.step_time, EndOf(measured))};
  for (size_t worker = 0; worker < std::max(predicted.workers.size(), measured.size()); ++worker) {
    if (worker < predicted.workers.size()) {
      picture.rows.push_back(
          {absl::StrCat("worker ", worker, " predicted"), predicted.workers[worker]});
    }
    if (worker < measured.size()) {
      picture.rows.push_back({absl::StrCat("worker ", worker, " measured"), measured[worker]});
    }
  }
  picture.memory = MemoryRows(predicted, {});
  return picture;
}

}  // namespace siphon
