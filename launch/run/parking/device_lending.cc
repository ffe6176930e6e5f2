#include "launch/run/parking/device_lending.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "launch/plan_job/parking_region.h"
#include "planner/round_up.h"
#include "planner/status.h"

namespace siphon {
namespace {

// What a device lends, as a part of the region that all lenders are.
struct Slice {
  Bytes begin, end;
};

std::map<DeviceId, Slice> SlicesOf(const ParkingRegion& region) {
  std::map<DeviceId, Slice> slices;
  for (const ParkingRegion::Part& part : region.parts) {
    const Bytes end = part.offset + part.bytes;
    Slice& slice = slices.try_emplace(part.lender, Slice{part.offset, end}).first->second;
    slice.end = std::max(slice.end, end);
  }
  return slices;
}

absl::Span<std::byte> Cut(absl::Span<std::byte> memory, Bytes offset, Bytes bytes) {
  return memory.subspan(static_cast<size_t>(offset.value), static_cast<size_t>(bytes.value));
}

}  // namespace

DeviceLending::DeviceLending(const WorkerDevice& device, WorkerId me,
                             std::vector<DeviceId> device_of, Coordinator& coordinator)
    : device_(device), me_(me), device_of_(std::move(device_of)), coordinator_(coordinator) {}

DeviceLending::~DeviceLending() {
  if (own_ != nullptr) static_cast<void>(own_.release());
}

Bytes DeviceLending::LentHere(const std::vector<WorkerParking>& parking) const {
  const auto slices = SlicesOf(LayOutRegion(parking));
  const auto mine = slices.find(device_of_[static_cast<size_t>(me_.value)]);
  if (mine == slices.end()) return Bytes(0);
  return RoundUp(mine->second.end - mine->second.begin, kCudaArenaBlock);
}

absl::Status DeviceLending::Lend(const std::vector<WorkerParking>& parking) {
  const Bytes bytes = LentHere(parking);
  if (bytes == Bytes(0)) return absl::OkStatus();
  SIPHON_CHECK(own_ == nullptr, "what was lent is given back first");
  SIPHON_ASSIGN_OR_RETURN(own_, device_.cuda->MakeArena(device_.torch->device().index, bytes));
  return absl::OkStatus();
}

absl::Status DeviceLending::Open(const std::vector<WorkerParking>& parking) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> handles,
                          coordinator_.GatherText(own_ == nullptr ? "" : own_->handle()));
  const ParkingRegion region = LayOutRegion(parking);
  const std::map<DeviceId, Slice> slices = SlicesOf(region);
  const int here = device_.torch->device().index;
  const auto open = [&](const ParkingRegion::Part& part) -> absl::Status {
    const auto lender = absl::c_find(device_of_, part.lender);
    Bytes offset = part.offset - slices.at(part.lender).begin;
    std::string handle;
    if (lender != device_of_.end()) {
      handle = handles[static_cast<size_t>(lender - device_of_.begin())];
      if (handle.empty()) return absl::OkStatus();  // it does not lend
    } else {
      SIPHON_ASSIGN_OR_RETURN(std::unique_ptr<ParkingArena> idle,
                              device_.cuda->MakeArena(device_.index_of(part.lender), part.bytes));
      handle = idle->handle();
      idle_.push_back(std::move(idle));
      offset = Bytes(0);
    }
    SIPHON_ASSIGN_OR_RETURN(std::unique_ptr<OpenedArena> arena,
                            device_.cuda->OpenArena(here, handle));
    parts_[part.lender] = Cut(arena->memory(), offset, part.bytes);
    opened_[part.lender] = std::move(arena);
    return absl::OkStatus();
  };
  absl::Status opened;
  out_of_reach_.clear();
  for (const ParkingRegion::Part& part : region.parts) {
    if (part.owner != me_ || !opened.ok()) continue;
    opened = open(part);
    if (!absl::IsUnavailable(opened) && !absl::IsResourceExhausted(opened)) continue;
    out_of_reach_[part.lender] = std::string(opened.message());
    opened = absl::OkStatus();
  }
  return coordinator_.Agree(opened);
}

absl::Span<std::byte> DeviceLending::PartAt(DeviceId lender) const {
  const auto part = parts_.find(lender);
  return part == parts_.end() ? absl::Span<std::byte>() : part->second;
}

absl::Status DeviceLending::CloseAt(const std::set<DeviceId>& lenders) {
  for (const DeviceId lender : lenders) {
    parts_.erase(lender);
    opened_.erase(lender);
  }
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(absl::OkStatus()));
  if (lenders.contains(device_of_[static_cast<size_t>(me_.value)])) own_ = nullptr;
  return absl::OkStatus();
}

absl::Status DeviceLending::Close() {
  parts_.clear();
  opened_.clear();
  idle_.clear();
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(absl::OkStatus()));
  own_ = nullptr;
  return absl::OkStatus();
}

}  // namespace siphon
