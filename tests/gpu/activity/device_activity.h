#ifndef SIPHON_TESTS_GPU_ACTIVITY_DEVICE_ACTIVITY_H_
#define SIPHON_TESTS_GPU_ACTIVITY_DEVICE_ACTIVITY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/units.h"

namespace siphon {

// A copy or a kernel on a device, as the device's own clock has it.
struct DeviceActivity {
  enum class Kind { kToDevice, kToHost, kWithinDevice, kToPeer, kOtherCopy, kKernel };
  enum class Engine { kCopy, kCompute, kOther };  // what the channel that it came by serves

  Kind kind = Kind::kKernel;
  Engine engine = Engine::kCompute;
  int device = 0;  // that issued it
  int channel = 0;
  int stream = 0;
  Bytes bytes;  // of a copy
  Nanos start, end;
  friend bool operator==(const DeviceActivity&, const DeviceActivity&) = default;
};

// "to host", "copy engine"
std::string NameOf(DeviceActivity::Kind kind);
std::string NameOf(DeviceActivity::Engine engine);

// One line, without its end: "to_host copy_engine 0 5 17 8388608 1000 2000", the last two in ns.
std::string LineOf(const DeviceActivity& activity);
// What LineOf made. Errors: InvalidArgument.
absl::StatusOr<DeviceActivity> ParseActivity(absl::string_view line);

}  // namespace siphon

#endif  // SIPHON_TESTS_GPU_ACTIVITY_DEVICE_ACTIVITY_H_
