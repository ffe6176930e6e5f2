#ifndef SIPHON_SWAP_DEVICE_CUDA_OPTIONS_H_
#define SIPHON_SWAP_DEVICE_CUDA_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/units.h"
#include "swap/device/cpu_backend.h"

namespace siphon {

// What a CUDA worker is made with; no CUDA in here, so that anybody may include it.

// A device as its driver shows it.
struct CudaDeviceInfo {
  int device = 0;  // among the visible ones
  std::string name;
  std::string bus_id;     // "0000:1B:00.0"
  std::string uuid;       // "GPU-5eb2b8ca-...": of this piece of hardware
  int compute_major = 0;  // 9.0 for an H100
  int compute_minor = 0;
  int copy_engines = 0;          // asyncEngineCount
  std::optional<int> numa_node;  // that it is near; none: one node, or a virtual machine hides it
  Bytes memory;
};

// A copy engine as far as copies are concerned: what goes over it in one lane goes one after the
// other.
struct CudaWay {
  // At once: what somebody else has to copy waits behind that much. 8 MiB are 0.15 ms at 55 GB/s
  // (PCIe 5) and 0.65 ms at 12 GB/s (PCIe 3).
  Bytes chunk{8 << 20};
  int chunks_in_flight = 2;  // one that moves, one behind it
  // That chunks are given to in turn: an engine turns to others when a stream has nothing more for
  // it, which one stream with two chunks never has. An H100's let 64 KiB wait for all of 1 GiB (20
  // ms) then, and 0.3 ms with two streams, at the same rate (tests/gpu/README.md).
  int streams = 2;
};

// Boards with switches have one copy engine for all peers, others one for each.
enum class PeerEngines { kOneForAll, kOneEach };

struct CudaBackendOptions {
  int device = 0;
  std::vector<CudaWay> ways;
  std::vector<int> way_of_link;  // [CopyLinkId]
  // The stream that the worker computes on (a cudaStream_t): a copy begins when all is done that
  // the stream was given before StartCopy. None: at once.
  std::optional<void*> work_stream;
  std::optional<DriveLink> drive;
  // Checksums will be asked for: Make takes what they need of the device. The first one takes it
  // otherwise, and taking it may wait for the whole device.
  bool checksums = false;
  // For tests: called by the backend's thread before it gives a chunk to a stream; an error fails
  // the copy, and the rest of it is left out.
  std::function<absl::Status(const CopyChunk&)> before_chunk;
  // How often what is under way is looked at: chunks of 8 MiB take 3 to 13 times as long.
  Nanos poll{50'000};
};

// Ways and links of a worker with so many lenders: the host's link first.
CudaBackendOptions OptionsForLenders(int device, int lenders, PeerEngines engines);

struct PinnedPoolOptions {
  Bytes bytes;                   // of the pool, rounded up to pages
  Bytes cap;                     // refused beyond: a host that has pinned too much swaps, or dies
  std::optional<int> numa_node;  // where its pages shall be: the device's; none: the worker's
  int threads = 4;               // that touch them first
};

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_OPTIONS_H_
