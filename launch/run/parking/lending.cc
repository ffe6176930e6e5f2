#include "launch/run/parking/lending.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "launch/plan_job/parking_region.h"
#include "planner/status.h"

namespace siphon {

DeviceId DeviceOfWorker(const PreparedJob& prepared, WorkerId worker) {
  const std::vector<DeviceId>& devices = prepared.plan_text.mapping.device_of_worker;
  return devices.empty() ? DeviceId(worker.value) : devices[static_cast<size_t>(worker.value)];
}

Lending::Lending(const PreparedJob& prepared, const WorkerSeat& seat, SeatMemory& memory,
                 const NumaPlace& numa, Coordinator& coordinator)
    : seat_(seat),
      memory_(memory),
      books_(memory.books()),
      numa_(numa),
      coordinator_(coordinator),
      device_(DeviceOfWorker(prepared, seat.me)) {
  if (seat.device == nullptr) return;
  for (int worker = 0; worker < WorkerCount(prepared.plan.training); ++worker) {
    device_of_.push_back(DeviceOfWorker(prepared, WorkerId(worker)));
  }
  on_device_ = std::make_unique<DeviceLending>(*seat.device, seat.me, device_of_, coordinator);
}

// An arena stays as large as it is, whatever becomes of what it was taken for, until it goes.
Bytes Lending::BytesHere(const std::vector<WorkerParking>& now) const {
  if (on_device_ != nullptr) return on_device_->LentHere(region_.parking);
  return LentBytes(now, device_);
}

absl::Status Lending::Take(const RoomRegion& region, const std::vector<WorkerParking>& now) {
  region_ = region;
  device_refuses_ = false;
  left_.clear();
  refusal_ = TakeBytes(now);
  if (on_device_ == nullptr) {
    if (refusal_.ok()) Touch({}, now);
    return absl::OkStatus();
  }
  // What LibTorch keeps for reuse is in the way of an arena.
  SIPHON_RETURN_IF_ERROR(coordinator_.Agree(memory_.LimitTorch()));
  if (refusal_.ok()) {
    refusal_ = on_device_->Lend(region_.parking);
    device_refuses_ = absl::IsResourceExhausted(refusal_);
    if (!refusal_.ok()) {
      books_.Give(std::exchange(lent_, Bytes(0)), MemoryKind::kLent);
      memory_.LimitTorch().IgnoreError();  // of more than it may have already
    }
  }
  return on_device_->Open(region_.parking);
}

absl::Status Lending::TakeBytes(const std::vector<WorkerParking>& now) {
  const Bytes bytes = BytesHere(now);
  if (bytes == Bytes(0)) return absl::OkStatus();
  if (seat_.at_phase) SIPHON_RETURN_IF_ERROR(seat_.at_phase(kLendingPhase));
  const Bytes used = books_.used();
  if (!books_.Take(bytes, MemoryKind::kLent)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("tensors of other workers, which are parked here, need ", FormatBytes(bytes),
                     used > Bytes(0) ? absl::StrCat(" beside ", FormatBytes(used)) : "",
                     ", memory.capacity is ", FormatBytes(books_.capacity())));
  }
  lent_ = bytes;
  return absl::OkStatus();
}

absl::Status Lending::AskAgain() {
  if (lent_ == Bytes(0) || !seat_.at_phase) return absl::OkStatus();
  refusal_ = seat_.at_phase(kLendingPhase);
  return IsRefusal(refusal_) ? absl::OkStatus() : refusal_;
}

absl::Status Lending::TakeMore(const std::vector<WorkerParking>& now) {
  const Bytes needed = LentBytes(now, device_);
  if (needed == Bytes(0) || (on_device_ == nullptr && needed <= lent_)) return absl::OkStatus();
  if (!refusal_.ok()) return refusal_;
  if (on_device_ != nullptr) return absl::OkStatus();  // it has been there from the begin
  if (!books_.Take(needed - lent_, MemoryKind::kLent)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("second choices of other workers, which go here, need ",
                     FormatBytes(needed - lent_), " beside ", FormatBytes(books_.used()),
                     ", memory.capacity is ", FormatBytes(books_.capacity())));
  }
  lent_ = needed;
  return absl::OkStatus();
}

void Lending::Touch(const std::vector<WorkerParking>& before,
                    const std::vector<WorkerParking>& now) {
  if (region_.lent.empty()) return;
  const auto bytes_at = [](const std::vector<WorkerParking>& parking, WorkerId owner,
                           const ParkingPlace& place) {
    if (parking.empty()) return Bytes(0);
    const auto& bytes = parking[static_cast<size_t>(owner.value)].bytes;
    const auto found = bytes.find(place);
    return found == bytes.end() ? Bytes(0) : found->second;
  };
  for (const ParkingRegion::Part& part : LayOutRegion(region_.parking).parts) {
    if (part.lender != device_) continue;
    const ParkingPlace place{Placement::kPeerSwap, part.lender};
    const Bytes from = bytes_at(before, part.owner, place);
    const Bytes to = bytes_at(now, part.owner, place);
    if (to <= from) continue;
    const absl::Span<std::byte> memory = region_.lent.subspan(
        static_cast<size_t>((part.offset + from).value), static_cast<size_t>((to - from).value));
    numa_.Place(memory);
    std::memset(memory.data(), 0, memory.size());
  }
}

void Lending::GiveUnused(const std::vector<WorkerParking>& now) {
  if (on_device_ != nullptr) return;  // its arena stays as it is
  const Bytes still_lent = std::min(lent_, LentBytes(now, device_));
  books_.Give(lent_ - still_lent, MemoryKind::kLent);
  lent_ = still_lent;
}

absl::Status Lending::LeaveRefusing(const std::set<WorkerId>& lenders,
                                    const std::vector<WorkerParking>& now) {
  if (on_device_ == nullptr) return absl::OkStatus();
  std::set<DeviceId> leaving;
  for (const WorkerId lender : lenders) {
    const DeviceId device = device_of_[static_cast<size_t>(lender.value)];
    if (LentBytes(now, device) == Bytes(0) && left_.insert(device).second) leaving.insert(device);
  }
  if (leaving.empty()) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(on_device_->CloseAt(leaving));
  if (!leaving.contains(device_)) return absl::OkStatus();
  books_.Give(std::exchange(lent_, Bytes(0)), MemoryKind::kLent);
  return memory_.LimitTorch();  // of more than it had: it is never too much
}

absl::Status Lending::GiveBack() {
  if (on_device_ != nullptr) SIPHON_RETURN_IF_ERROR(on_device_->Close());
  books_.Give(std::exchange(lent_, Bytes(0)), MemoryKind::kLent);
  return absl::OkStatus();
}

std::map<DeviceId, std::string> Lending::OutOfReach() const {
  return on_device_ == nullptr ? std::map<DeviceId, std::string>() : on_device_->out_of_reach();
}

bool Lending::Lacks(const WorkerParking& parking) const {
  if (on_device_ == nullptr) return false;
  return absl::c_any_of(parking.bytes, [&](const auto& place) {
    return place.first.tier == Placement::kPeerSwap &&
           on_device_->PartAt(place.first.lender).empty();
  });
}

}  // namespace siphon
