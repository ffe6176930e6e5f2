#include "launch/run/seat/step_record.h"

#include <cstring>
#include <string>
#include <type_traits>

#include "planner/status.h"

namespace siphon {

namespace {

constexpr int32_t kHostNumber = 1;
constexpr int32_t kDriveNumber = 2;
constexpr int32_t kFirstLender = 3;

}  // namespace

int32_t PlaceNumber(const ParkingPlace& place) {
  if (place.tier == Placement::kPeerSwap) return kFirstLender + place.lender.value;
  return place.tier == Placement::kHostSwap ? kHostNumber : kDriveNumber;
}

ParkingPlace PlaceOfNumber(int32_t number) {
  SIPHON_CHECK(number > 0, "a place has a number above 0");
  if (number >= kFirstLender) return {Placement::kPeerSwap, DeviceId(number - kFirstLender)};
  return {number == kHostNumber ? Placement::kHostSwap : Placement::kNvmeSwap, DeviceId(0)};
}

StepRecord SummariseTimeline(const WorkerTimeline& timeline) {
  StepRecord record;
  for (const Interval& interval : timeline) {
    const int64_t duration = (interval.end - interval.begin).value;
    if (interval.kind == IntervalKind::kWait) {
      record.wait_ns += duration;
      const ActionKind kind = interval.action.kind;
      const bool copies = kind == ActionKind::kSwapOutEnd || kind == ActionKind::kSwapInEnd;
      if (copies) record.swap_wait_ns += duration;
      continue;
    }
    record.busy_ns += duration;
    if (interval.action.kind == ActionKind::kRecompute) record.recompute_ns += duration;
  }
  return record;
}

void SetBytesOut(const std::map<Placement, Bytes>& bytes_out, StepRecord& record) {
  const auto to = [&bytes_out](Placement tier) {
    const auto found = bytes_out.find(tier);
    return found == bytes_out.end() ? int64_t{0} : found->second.value;
  };
  record.out_to_peers_bytes = to(Placement::kPeerSwap);
  record.out_to_host_bytes = to(Placement::kHostSwap);
  record.out_to_nvme_bytes = to(Placement::kNvmeSwap);
}

absl::StatusOr<std::vector<WorkerTimeline>> GatherTimelines(Coordinator& coordinator,
                                                            const WorkerTimeline& mine) {
  static_assert(std::is_trivially_copyable_v<Interval>);
  const std::string packed(reinterpret_cast<const char*>(mine.data()),
                           mine.size() * sizeof(Interval));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> all, coordinator.GatherText(packed));
  std::vector<WorkerTimeline> timelines;
  for (const std::string& bytes : all) {
    WorkerTimeline& timeline = timelines.emplace_back(bytes.size() / sizeof(Interval));
    std::memcpy(timeline.data(), bytes.data(), timeline.size() * sizeof(Interval));
  }
  return timelines;
}

}  // namespace siphon
