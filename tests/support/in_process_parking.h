#ifndef SIPHON_TESTS_SUPPORT_IN_PROCESS_PARKING_H_
#define SIPHON_TESTS_SUPPORT_IN_PROCESS_PARKING_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "planner/ids.h"
#include "swap/device/cpu_backend.h"
#include "swap/device/device_backend.h"
#include "swap/device/link_queues.h"
#include "swap/device/nvme_parking.h"
#include "swap/parking_layout.h"
#include "swap/swap_engine.h"

namespace siphon {

struct InProcessParkingOptions {
  // How fast the link to a place is; null: as fast as memory.
  std::function<CopyLinkRate(const ParkingPlace&)> rate_of;
  // Memory of a lender that the test has, as large as the layout says; null: the worker has some of
  // its own.
  std::function<absl::Span<std::byte>(const ParkingPlace&)> lent;
  // Last, of what copies: of the link to the host first, which is there in any case, then of those
  // to the other places of the layout.
  std::function<void(CpuBackendOptions&)> adjust;
};

// What one worker of a test needs to move tensors: memory at every place of its layout, a file
// for one on a drive, threads that copy, and an engine that checks all that it moves.
class InProcessParking {
 public:
  explicit InProcessParking(const WorkerParking& parking,
                            const InProcessParkingOptions& options = {});
  SwapEngine* engine() { return engine_.get(); }
  // Of the host, for optimizer steps there; until the next call.
  absl::Span<std::byte> HostMemory(Bytes bytes);

 private:
  // So that it begins where cache lines do.
  struct alignas(64) HostLine {
    std::byte bytes[64];
  };

  std::map<ParkingPlace, std::vector<std::byte>> memory_;
  std::vector<HostLine> host_memory_;
  std::unique_ptr<NvmeParking> drive_;
  std::unique_ptr<DeviceBackend> backend_;
  std::unique_ptr<SwapEngine> engine_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_SUPPORT_IN_PROCESS_PARKING_H_
