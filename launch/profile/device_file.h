#ifndef SIPHON_LAUNCH_PROFILE_DEVICE_FILE_H_
#define SIPHON_LAUNCH_PROFILE_DEVICE_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/performance/device_spec.h"

namespace siphon {

// What a calibration measured, as YAML; ParseCalibration gives an equal value.
std::string WriteCalibration(const CpuCalibration& calibration);

// Reads it, strictly. `name` stands for the file in messages. Errors: InvalidArgument
// "<name>:<line>:<column>: <key>: <what is wrong>; <what would be right>".
absl::StatusOr<CpuCalibration> ParseCalibration(absl::string_view text, absl::string_view name);

// What --device names: a device of the table, or else a file of a calibration. Errors: NotFound,
// with the known names, when it is neither; as of ParseCalibration and CpuDeviceSpec.
absl::StatusOr<DeviceSpec> LoadDevice(const std::string& name_or_path);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_DEVICE_FILE_H_
