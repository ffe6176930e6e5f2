#ifndef SIPHON_LAUNCH_RUN_SEAT_SEAT_MEMORY_H_
#define SIPHON_LAUNCH_RUN_SEAT_SEAT_MEMORY_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "launch/config/job_config.h"
#include "launch/run/seat/worker_seat.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "planner/units.h"
#include "swap/memory_ledger.h"

namespace siphon {

// What one worker may hold (memory.capacity), and holds. On the CPU all of it is on its books; of a
// device, what LibTorch's allocator takes is on that one's, which is limited to what the worker's
// leave.
//
// Thread-safety: one thread, the worker's; the books are for all.
class SeatMemory {
 public:
  // The seat outlives this.
  SeatMemory(const JobConfig& job, const WorkerSeat& seat);

  MemoryLedger& books() { return *books_; }
  Bytes capacity() const { return books_->capacity(); }  // 0: no limit
  // So long as it lives, what the thread allocates is on the books; null: that is none of its
  // device's memory.
  std::unique_ptr<LedgerScope> CountThread() const;
  // Rings are there from the begin to the end, whatever the steps do. Errors: ResourceExhausted.
  absl::Status TakeCommunication();
  // LibTorch may have of the device what the books leave now; on the CPU there is nothing to do.
  // Errors: as TorchDevice::Limit.
  absl::Status LimitTorch();

  // Since ResetPeak. On a device: tensors, beside what NCCL has and what is lent.
  Bytes Peak() const;
  void ResetPeak();

  // Where its device has lacked memory that the capacity has: "its device has 0 B left where
  // tensors need 4.00 MiB more and may take 24.0 MiB".
  std::optional<std::string> Shortage() const;

 private:
  const WorkerSeat& seat_;
  const std::shared_ptr<MemoryLedger> books_;  // outlives every tensor
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SEAT_SEAT_MEMORY_H_
