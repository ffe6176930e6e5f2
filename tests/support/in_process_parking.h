#ifndef SIPHON_TESTS_SUPPORT_IN_PROCESS_PARKING_H_
#define SIPHON_TESTS_SUPPORT_IN_PROCESS_PARKING_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "planner/ids.h"
#include "swap/device/device_backend.h"
#include "swap/device/link_queues.h"
#include "swap/device/nvme_parking.h"
#include "swap/parking_layout.h"
#include "swap/swap_engine.h"

namespace siphon {

// What one worker of a test needs to move tensors: memory at every place of its layout, a file
// for one on a drive, threads that copy, and an engine that checks all that it moves.
class InProcessParking {
 public:
  // How fast the link to a place is; null: as fast as memory.
  using RateOf = std::function<CopyLinkRate(const ParkingPlace&)>;

  explicit InProcessParking(const WorkerParking& parking, const RateOf& rate_of = nullptr);
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
