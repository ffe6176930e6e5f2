#include "planner/performance/device_spec.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace siphon {
namespace {

struct DeviceRow {
  absl::string_view name;
  int64_t fp32_gigaflops;
  int64_t bf16_gigaflops;
  int64_t fp16_gigaflops;
  int fp32_percent;
  int half_percent;
  int64_t memory_gigabytes_per_second;
  int memory_percent;
  int64_t memory_gigabytes;
  int64_t launch_ns;
  int64_t host_megabytes_per_second;
};

constexpr DeviceRow kDevices[] = {
#define SIPHON_DEVICE(...) {__VA_ARGS__},
#include "planner/performance/devices.def"
#undef SIPHON_DEVICE
};

constexpr int64_t kMega = 1'000'000;
constexpr int64_t kGiga = 1'000'000'000;

DeviceSpec SpecOf(const DeviceRow& row) {
  DeviceSpec device;
  device.name = std::string(row.name);
  device.fp32_flops = row.fp32_gigaflops * kGiga;
  device.bf16_flops = row.bf16_gigaflops * kGiga;
  device.fp16_flops = row.fp16_gigaflops * kGiga;
  device.fp32_percent = row.fp32_percent;
  device.half_percent = row.half_percent;
  device.memory_bandwidth = BytesPerSecond(row.memory_gigabytes_per_second * kGiga);
  device.memory_percent = row.memory_percent;
  device.capacity = Bytes(row.memory_gigabytes * kGiga);
  device.launch_overhead = Nanos(row.launch_ns);
  device.host_link = BytesPerSecond(row.host_megabytes_per_second * kMega);
  return device;
}

int64_t PercentOf(int64_t value, int percent) { return value / 100 * percent; }

}  // namespace

int64_t AchievedFlops(const DeviceSpec& device, Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return PercentOf(device.fp32_flops, device.fp32_percent);
    case Precision::kBFloat16:
      // Without units for it, bf16 runs at the rate of float32.
      return PercentOf(device.bf16_flops, device.bf16_flops == device.fp32_flops
                                              ? device.fp32_percent
                                              : device.half_percent);
    case Precision::kFloat16:
      break;
  }
  return PercentOf(device.fp16_flops, device.half_percent);
}

BytesPerSecond AchievedBandwidth(const DeviceSpec& device) {
  return BytesPerSecond(PercentOf(device.memory_bandwidth.value, device.memory_percent));
}

absl::StatusOr<DeviceSpec> FindDeviceSpec(absl::string_view name) {
  for (const DeviceRow& row : kDevices) {
    if (absl::EqualsIgnoreCase(row.name, name)) return SpecOf(row);
  }
  return absl::NotFoundError(absl::StrCat("unknown device '", name,
                                          "'; known: ", absl::StrJoin(KnownDeviceSpecs(), ", ")));
}

std::vector<std::string> KnownDeviceSpecs() {
  std::vector<std::string> names;
  for (const DeviceRow& row : kDevices) names.emplace_back(row.name);
  return names;
}

absl::StatusOr<DeviceSpec> CpuDeviceSpec(const CpuCalibration& calibration) {
  if (calibration.product_flops < kLeastCpuRate ||
      calibration.copy_bandwidth.value < kLeastCpuRate) {
    return absl::InvalidArgumentError(
        absl::StrCat("calibration of '", calibration.name, "': ", calibration.product_flops,
                     " operations a second and ", FormatRate(calibration.copy_bandwidth),
                     "; both must have been measured and be ", kLeastCpuRate, " a second or more"));
  }
  DeviceSpec device;
  device.name = calibration.name;
  device.fp32_flops = calibration.product_flops;
  device.bf16_flops = calibration.product_flops;
  device.fp16_flops = calibration.product_flops;
  device.memory_bandwidth = calibration.copy_bandwidth;
  device.capacity = calibration.memory;
  device.launch_overhead = calibration.operation_overhead;
  return device;
}

}  // namespace siphon
