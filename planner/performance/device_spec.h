#ifndef SIPHON_PLANNER_PERFORMANCE_DEVICE_SPEC_H_
#define SIPHON_PLANNER_PERFORMANCE_DEVICE_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/memory/memory_estimate.h"
#include "planner/units.h"

namespace siphon {

// What layers' times are calculated from. Peaks are the vendor's, dense; what kernels get of them
// is a share.
struct DeviceSpec {
  std::string name;
  int64_t fp32_flops = 0;  // a second
  int64_t bf16_flops = 0;
  int64_t fp16_flops = 0;
  int fp32_percent = 100;  // of the peak that large matrix products and convolutions get
  int half_percent = 100;  // likewise in bf16 and fp16
  BytesPerSecond memory_bandwidth;
  int memory_percent = 100;  // of the bandwidth that kernels limited by memory get
  Bytes capacity;            // 0: not known
  Nanos launch_overhead;     // of each kernel
  BytesPerSecond host_link;  // pinned copies, one direction at a time, measured; 0: no host beyond
  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

// Operations a second that are achieved. Positive for every device below.
int64_t AchievedFlops(const DeviceSpec& device, Precision precision);
BytesPerSecond AchievedBandwidth(const DeviceSpec& device);

// From the table devices.def, upper or lower case. Errors: NotFound, known ones listed.
absl::StatusOr<DeviceSpec> FindDeviceSpec(absl::string_view name);
std::vector<std::string> KnownDeviceSpecs();

// A CPU by what a short calibration measured on it: a large float32 matrix product and a copy of a
// block much larger than the caches, both with the threads that a worker will have. 16-bit numbers
// are computed as float32 there.
struct CpuCalibration {
  std::string name;
  int64_t product_flops = 0;      // a second, achieved
  BytesPerSecond copy_bandwidth;  // bytes read and written a second, achieved
  Nanos operation_overhead;       // of one small operation
  Bytes memory;
  friend bool operator==(const CpuCalibration&, const CpuCalibration&) = default;
};
// A lower rate was not measured.
inline constexpr int64_t kLeastCpuRate = 100;  // a second
// Errors: InvalidArgument if a rate is below kLeastCpuRate.
absl::StatusOr<DeviceSpec> CpuDeviceSpec(const CpuCalibration& calibration);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_DEVICE_SPEC_H_
