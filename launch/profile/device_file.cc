#include "launch/profile/device_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/config/config_map.h"
#include "launch/config/config_tree.h"
#include "launch/config/config_values.h"
#include "launch/config/read_text_file.h"
#include "planner/status.h"

namespace siphon {
namespace {

// A rate that was measured.
MapKey RateKey(absl::string_view file, absl::string_view name, int64_t& rate) {
  MapKey key = Required(ValueKey(file, name, rate));
  key.read = [file, name, &rate, read = std::move(key.read)](const ConfigNode& value) {
    const absl::Status status = read(value);
    if (!status.ok() || rate >= kLeastCpuRate) return status;
    return ConfigErrorAt(file, value,
                         absl::StrCat(name, ": is ", rate,
                                      "; must have been measured and be at least ", kLeastCpuRate));
  };
  return key;
}

}  // namespace

std::string WriteCalibration(const CpuCalibration& calibration) {
  return absl::StrCat(
      "# What one worker of this machine achieves: float32 matrix products, copies of large blocks "
      "(bytes\n# read and written), and the time that one small operation takes.\n",
      "name: ", WriteValue(calibration.name),
      "\nproduct_flops_per_second: ", WriteValue(calibration.product_flops),
      "\ncopy_bytes_per_second: ", WriteValue(calibration.copy_bandwidth.value),
      "\noperation_overhead: ", WriteValue(calibration.operation_overhead),
      "\nmemory: ", WriteValue(calibration.memory), "\n");
}

absl::StatusOr<CpuCalibration> ParseCalibration(absl::string_view text, absl::string_view name) {
  SIPHON_ASSIGN_OR_RETURN(const ConfigNode root, ParseConfigTree(text, name));
  CpuCalibration calibration;
  SIPHON_RETURN_IF_ERROR(
      ReadConfigMap(name, root, "a device",
                    {Required(ValueKey(name, "name", calibration.name)),
                     RateKey(name, "product_flops_per_second", calibration.product_flops),
                     RateKey(name, "copy_bytes_per_second", calibration.copy_bandwidth.value),
                     ValueKey(name, "operation_overhead", calibration.operation_overhead),
                     ValueKey(name, "memory", calibration.memory)}));
  return calibration;
}

absl::StatusOr<DeviceSpec> LoadDevice(const std::string& name_or_path) {
  if (auto known = FindDeviceSpec(name_or_path); known.ok()) return known;
  const auto text = ReadTextFile(name_or_path, "device");
  if (!text.ok()) {
    return absl::NotFoundError(
        absl::StrCat("--device: '", name_or_path, "' is neither a known device (",
                     absl::StrJoin(KnownDeviceSpecs(), ", "),
                     ") nor a file that can be read; siphon profile --calibrate writes one"));
  }
  SIPHON_ASSIGN_OR_RETURN(const CpuCalibration calibration, ParseCalibration(*text, name_or_path));
  return CpuDeviceSpec(calibration);
}

}  // namespace siphon
