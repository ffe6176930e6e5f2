#ifndef SIPHON_SWAP_DEVICE_CUDA_NVML_H_
#define SIPHON_SWAP_DEVICE_CUDA_NVML_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siphon {

// Where an NVLink ends.
struct NvlinkEnd {
  enum class At { kDevice, kSwitch };
  At at = At::kSwitch;
  std::string bus_id;  // of a device, as CanonicalBusId has it; empty: a switch's
  friend bool operator==(const NvlinkEnd&, const NvlinkEnd&) = default;
};

struct NvmlDevice {
  std::string bus_id;  // as CanonicalBusId has it
  std::string uuid;
  std::vector<NvlinkEnd> links;  // those that are up
};

// What the driver shows of a server; CUDA_VISIBLE_DEVICES hides nothing from it.
struct NvmlServer {
  std::string driver;  // "580.65.06"
  std::vector<NvmlDevice> devices;
};

// "0000:1b:00.0" of "00000000:1B:00.0" or "0000:1B:00.0", as CUDA, NVML and sysfs write one place
// differently; other text in lower case.
std::string CanonicalBusId(absl::string_view bus_id);

// Asks NVML, which is loaded for that and let go: no program of ours links it. A link whose other
// end is no device that NVML shows ends at a switch; virtual machines hide switches.
// Errors: NotFound where there is no such library; Internal "<what NVML was asked>: <its words>".
// Thread-safety: one thread of a process at a time, as NVML's own initialisation wants it.
absl::StatusOr<NvmlServer> ReadNvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_NVML_H_
