// NVML without a driver. SIPHON_FAKE_NVML describes the server, read when NVML is started:
//
//   driver=580.65;0000:10:00.0,GPU-a,7.0,0000:11:00.0,off;0000:11:00.0,GPU-b,7.0,0000:10:00.0,off
//
// A device is its bus id, name and compute capability, then what each of its links is: the bus id
// of a device's, "switch:<bus id>", "hidden" (a switch that a virtual machine does not show),
// "off", "local" (no peer can be reached by it), or "lost" (asking where it ends is an error).
// A device of the name "forbidden" may not be seen.
// Without the variable there is no driver; "driver=" alone is one without devices.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "swap/device/cuda_nvml_types.h"

namespace siphon::nvml {
struct OpaqueDevice {
  std::string bus_id;
  std::string uuid;
  int major = 0;
  int minor = 0;
  std::vector<std::string> links;
};
}  // namespace siphon::nvml

namespace {

using siphon::nvml::Device;
using siphon::nvml::FieldValue;
using siphon::nvml::OpaqueDevice;
using siphon::nvml::PciInfo;
using siphon::nvml::Return;

constexpr Return kUninitialized = 1;
constexpr Return kDriverNotLoaded = 9;
constexpr Return kUnknown = 999;
constexpr int kHopper = 9;

struct Server {
  bool started = false;
  std::string driver;
  std::vector<OpaqueDevice> devices;
};

Server& TheServer() {
  static Server server;  // goes with the library, which may be let go
  return server;
}

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

const std::string* LinkOf(Device device, unsigned link) {
  return link < device->links.size() ? &device->links[link] : nullptr;
}

bool IsUp(const std::string& link) { return link != "off"; }

// NVML writes eight digits before the first colon, and capitals.
void WriteBusId(const std::string& bus_id, PciInfo* info) {
  *info = PciInfo();
  std::snprintf(info->bus_id, sizeof(info->bus_id), "0000%s", bus_id.c_str());
  for (char& letter : info->bus_id) {
    if (letter >= 'a' && letter <= 'f') letter = static_cast<char>(letter - 'a' + 'A');
  }
}

}  // namespace

extern "C" {

Return nvmlInit_v2() {
  Server& server = TheServer();
  server = Server();
  const char* const described = std::getenv("SIPHON_FAKE_NVML");
  if (described == nullptr) return kDriverNotLoaded;
  for (const std::string& item : Split(described, ';')) {
    if (item.rfind("driver=", 0) == 0) {
      server.driver = item.substr(std::strlen("driver="));
      continue;
    }
    const std::vector<std::string> parts = Split(item, ',');
    if (parts.size() < 3) return kUnknown;
    OpaqueDevice device{.bus_id = parts[0], .uuid = parts[1]};
    std::sscanf(parts[2].c_str(), "%d.%d", &device.major, &device.minor);
    device.links.assign(parts.begin() + 3, parts.end());
    server.devices.push_back(device);
  }
  server.started = true;
  return siphon::nvml::kSuccess;
}

Return nvmlShutdown() {
  TheServer().started = false;
  return siphon::nvml::kSuccess;
}

const char* nvmlErrorString(Return answer) {
  switch (answer) {
    case kUninitialized:
      return "Uninitialized";
    case siphon::nvml::kNotSupported:
      return "Not Supported";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

Return nvmlSystemGetDriverVersion(char* text, unsigned length) {
  if (!TheServer().started) return kUninitialized;
  std::snprintf(text, length, "%s", TheServer().driver.c_str());
  return siphon::nvml::kSuccess;
}

Return nvmlDeviceGetCount_v2(unsigned* count) {
  if (!TheServer().started) return kUninitialized;
  *count = static_cast<unsigned>(TheServer().devices.size());
  return siphon::nvml::kSuccess;
}

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (index >= TheServer().devices.size()) return siphon::nvml::kInvalidArgument;
  if (TheServer().devices[index].uuid == "forbidden") return siphon::nvml::kNoPermission;
  *device = &TheServer().devices[index];
  return siphon::nvml::kSuccess;
}

Return nvmlDeviceGetUUID(Device device, char* text, unsigned length) {
  std::snprintf(text, length, "%s", device->uuid.c_str());
  return siphon::nvml::kSuccess;
}

Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* info) {
  WriteBusId(device->bus_id, info);
  return siphon::nvml::kSuccess;
}

Return nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  *major = device->major;
  *minor = device->minor;
  return siphon::nvml::kSuccess;
}

Return nvmlDeviceGetNvLinkCapability(Device device, unsigned link, int capability, unsigned* can) {
  const std::string* const end = LinkOf(device, link);
  if (end == nullptr) return siphon::nvml::kNotSupported;
  *can = capability == siphon::nvml::kCapabilityP2p && *end != "local" ? 1 : 0;
  return siphon::nvml::kSuccess;
}

// Hopper and later answer by a field.
Return nvmlDeviceGetNvLinkState(Device device, unsigned link, int* state) {
  const std::string* const end = LinkOf(device, link);
  if (end == nullptr || device->major >= kHopper) return siphon::nvml::kNotSupported;
  *state = IsUp(*end) ? 1 : 0;
  return siphon::nvml::kSuccess;
}

Return nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
  for (int at = 0; at < count; ++at) {
    const std::string* const end = LinkOf(device, values[at].scope);
    const bool known = values[at].field == siphon::nvml::kFieldLinkState && end != nullptr;
    values[at].answer = known ? siphon::nvml::kSuccess : siphon::nvml::kNotSupported;
    values[at].value.as_unsigned = known && IsUp(*end) ? 1 : 0;
  }
  return siphon::nvml::kSuccess;
}

Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo* info) {
  const std::string* const end = LinkOf(device, link);
  if (end == nullptr) return siphon::nvml::kInvalidArgument;
  if (*end == "lost") return kUnknown;
  if (*end == "hidden") {
    *info = PciInfo();
    std::snprintf(info->bus_id, sizeof(info->bus_id), "FFFFFFF:FFFF:FF");
    return siphon::nvml::kSuccess;
  }
  constexpr char kSwitch[] = "switch:";
  WriteBusId(end->rfind(kSwitch, 0) == 0 ? end->substr(std::strlen(kSwitch)) : *end, info);
  return siphon::nvml::kSuccess;
}

Return nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned link, int* type) {
  const std::string* const end = LinkOf(device, link);
  if (end == nullptr || *end == "hidden") return siphon::nvml::kNotSupported;
  *type =
      end->rfind("switch:", 0) == 0 ? siphon::nvml::kRemoteIsSwitch : siphon::nvml::kRemoteIsDevice;
  return siphon::nvml::kSuccess;
}

}  // extern "C"
