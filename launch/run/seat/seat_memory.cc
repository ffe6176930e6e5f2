#include "launch/run/seat/seat_memory.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

Bytes CapacityOf(const JobConfig& job, WorkerId worker) {
  const std::vector<Bytes>& capacity = job.memory.capacity;
  if (capacity.empty()) return Bytes(0);
  return (capacity.size() == 1 ? capacity[0] : capacity[worker.value]) - job.memory.reserve;
}

}  // namespace

SeatMemory::SeatMemory(const JobConfig& job, const WorkerSeat& seat)
    : seat_(seat), books_(std::make_shared<MemoryLedger>(CapacityOf(job, seat.me))) {}

std::unique_ptr<LedgerScope> SeatMemory::CountThread() const {
  return seat_.device != nullptr ? nullptr : std::make_unique<LedgerScope>(books_);
}

absl::Status SeatMemory::TakeCommunication() {
  if (books_->Take(seat_.communication_bytes, MemoryKind::kCommunication)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "worker ", seat_.me.value, ": communication buffers need ",
      FormatBytes(seat_.communication_bytes), ", memory.capacity is ", FormatBytes(capacity())));
}

absl::Status SeatMemory::LimitTorch() {
  if (seat_.device == nullptr || capacity() == Bytes(0)) return absl::OkStatus();
  return seat_.device->torch->Limit(capacity() - books_->used());
}

Bytes SeatMemory::Peak() const {
  if (seat_.device == nullptr) return books_->peak();
  return books_->peak() + seat_.device->torch->memory().peak;
}

void SeatMemory::ResetPeak() {
  books_->ResetPeak();
  if (seat_.device != nullptr) seat_.device->torch->ResetPeak();
}

std::optional<std::string> SeatMemory::Shortage() const {
  if (seat_.device == nullptr) return std::nullopt;
  const std::optional<DeviceShortage> shortage = seat_.device->torch->shortage();
  if (!shortage.has_value()) return std::nullopt;
  return absl::StrCat("its device has ", FormatBytes(shortage->free), " left where tensors need ",
                      FormatBytes(shortage->asked), " more and may take ",
                      FormatBytes(shortage->limit - shortage->held));
}

}  // namespace siphon
