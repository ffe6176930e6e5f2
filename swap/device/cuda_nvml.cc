#include "swap/device/cuda_nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/cuda_nvml_types.h"

namespace siphon {
namespace {

// From here on a link's state is a field of its own (Hopper).
constexpr int kStateIsAField = 9;

// NVML between its initialisation and its end.
class Nvml {
 public:
  static absl::StatusOr<std::unique_ptr<Nvml>> Load(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  absl::StatusOr<NvmlServer> Read() const;

 private:
  explicit Nvml(void* library) : library_(library) {}
  absl::Status FindFunctions(const std::string& library);
  absl::Status Check(nvml::Return answer, absl::string_view asked) const;
  absl::StatusOr<std::string> BusIdOf(nvml::Device device) const;
  absl::StatusOr<std::vector<NvlinkEnd>> LinksOf(nvml::Device device,
                                                 const std::set<std::string>& devices) const;
  bool CanCopy(nvml::Device device, unsigned link) const;
  bool IsUp(nvml::Device device, unsigned link, int compute_major) const;
  std::optional<NvlinkEnd> EndOf(nvml::Device device, unsigned link,
                                 const std::set<std::string>& devices) const;

  void* const library_;
  bool initialised_ = false;

  nvml::Return (*init_)() = nullptr;
  nvml::Return (*shutdown_)() = nullptr;
  const char* (*error_string_)(nvml::Return) = nullptr;
  nvml::Return (*driver_version_)(char*, unsigned) = nullptr;
  nvml::Return (*count_)(unsigned*) = nullptr;
  nvml::Return (*by_index_)(unsigned, nvml::Device*) = nullptr;
  nvml::Return (*uuid_)(nvml::Device, char*, unsigned) = nullptr;
  nvml::Return (*pci_info_)(nvml::Device, nvml::PciInfo*) = nullptr;
  nvml::Return (*compute_)(nvml::Device, int*, int*) = nullptr;
  nvml::Return (*link_capability_)(nvml::Device, unsigned, int, unsigned*) = nullptr;
  nvml::Return (*link_state_)(nvml::Device, unsigned, int*) = nullptr;
  nvml::Return (*link_remote_)(nvml::Device, unsigned, nvml::PciInfo*) = nullptr;
  // Older drivers have none: null.
  nvml::Return (*fields_)(nvml::Device, int, nvml::FieldValue*) = nullptr;
  nvml::Return (*link_remote_type_)(nvml::Device, unsigned, int*) = nullptr;
};

absl::StatusOr<std::unique_ptr<Nvml>> Nvml::Load(const std::string& library) {
  void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return absl::NotFoundError(absl::StrCat("no NVML: ", dlerror()));
  std::unique_ptr<Nvml> nvml(new Nvml(loaded));
  SIPHON_RETURN_IF_ERROR(nvml->FindFunctions(library));
  SIPHON_RETURN_IF_ERROR(nvml->Check(nvml->init_(), "starting it"));
  nvml->initialised_ = true;
  return nvml;
}

Nvml::~Nvml() {
  if (initialised_) static_cast<void>(shutdown_());
  dlclose(library_);
}

absl::Status Nvml::FindFunctions(const std::string& library) {
  absl::Status status;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library_, name));
    if (function == nullptr && status.ok()) {
      status = absl::InternalError(absl::StrCat("NVML: ", library, " has no ", name));
    }
  };
  find(init_, "nvmlInit_v2");
  find(shutdown_, "nvmlShutdown");
  find(error_string_, "nvmlErrorString");
  find(driver_version_, "nvmlSystemGetDriverVersion");
  find(count_, "nvmlDeviceGetCount_v2");
  find(by_index_, "nvmlDeviceGetHandleByIndex_v2");
  find(uuid_, "nvmlDeviceGetUUID");
  find(pci_info_, "nvmlDeviceGetPciInfo_v3");
  find(compute_, "nvmlDeviceGetCudaComputeCapability");
  find(link_capability_, "nvmlDeviceGetNvLinkCapability");
  find(link_state_, "nvmlDeviceGetNvLinkState");
  find(link_remote_, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  if (!status.ok()) return status;
  find(fields_, "nvmlDeviceGetFieldValues");
  find(link_remote_type_, "nvmlDeviceGetNvLinkRemoteDeviceType");
  return absl::OkStatus();
}

absl::Status Nvml::Check(nvml::Return answer, absl::string_view asked) const {
  if (answer == nvml::kSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("NVML: ", asked, ": ", error_string_(answer)));
}

absl::StatusOr<std::string> Nvml::BusIdOf(nvml::Device device) const {
  nvml::PciInfo info = {};
  SIPHON_RETURN_IF_ERROR(Check(pci_info_(device, &info), "where a device is"));
  return CanonicalBusId(info.bus_id);
}

// Links beyond those that a device has are answered by an error.
bool Nvml::CanCopy(nvml::Device device, unsigned link) const {
  unsigned can = 0;
  return link_capability_(device, link, nvml::kCapabilityP2p, &can) == nvml::kSuccess && can != 0;
}

bool Nvml::IsUp(nvml::Device device, unsigned link, int compute_major) const {
  if (compute_major >= kStateIsAField && fields_ != nullptr) {
    nvml::FieldValue state = {};
    state.field = nvml::kFieldLinkState;
    state.scope = link;
    return fields_(device, 1, &state) == nvml::kSuccess && state.answer == nvml::kSuccess &&
           state.value.as_unsigned != 0;
  }
  int state = 0;
  return link_state_(device, link, &state) == nvml::kSuccess && state != 0;
}

// None: the driver does not say, for another reason than that a virtual machine hides a switch;
// such a wire is one less, and no reason to do without all others.
std::optional<NvlinkEnd> Nvml::EndOf(nvml::Device device, unsigned link,
                                     const std::set<std::string>& devices) const {
  NvlinkEnd end;
  nvml::PciInfo remote = {};
  const nvml::Return answer = link_remote_(device, link, &remote);
  if (answer == nvml::kSuccess) {
    end.bus_id = CanonicalBusId(remote.bus_id);
  } else if (answer != nvml::kNotSupported && answer != nvml::kNotFound) {
    return std::nullopt;
  }
  int type = -1;
  if (link_remote_type_ == nullptr || link_remote_type_(device, link, &type) != nvml::kSuccess) {
    type = -1;
  }
  const bool is_device = type == nvml::kRemoteIsDevice ||
                         (type != nvml::kRemoteIsSwitch && devices.contains(end.bus_id));
  end.at = is_device ? NvlinkEnd::At::kDevice : NvlinkEnd::At::kSwitch;
  if (!is_device) end.bus_id.clear();
  return end;
}

absl::StatusOr<std::vector<NvlinkEnd>> Nvml::LinksOf(nvml::Device device,
                                                     const std::set<std::string>& devices) const {
  int major = 0;
  int minor = 0;
  SIPHON_RETURN_IF_ERROR(Check(compute_(device, &major, &minor), "what a device can compute"));
  std::vector<NvlinkEnd> ends;
  for (unsigned link = 0; link < nvml::kMostLinks; ++link) {
    if (!CanCopy(device, link) || !IsUp(device, link, major)) continue;
    if (std::optional<NvlinkEnd> end = EndOf(device, link, devices)) {
      ends.push_back(*std::move(end));
    }
  }
  return ends;
}

absl::StatusOr<NvmlServer> Nvml::Read() const {
  NvmlServer server;
  std::array<char, nvml::kVersionBytes> version = {};
  SIPHON_RETURN_IF_ERROR(
      Check(driver_version_(version.data(), version.size()), "the driver's version"));
  server.driver = version.data();
  unsigned count = 0;
  SIPHON_RETURN_IF_ERROR(Check(count_(&count), "how many devices there are"));
  std::vector<nvml::Device> devices;
  std::set<std::string> bus_ids;
  for (unsigned index = 0; index < count; ++index) {
    nvml::Device device = nullptr;
    const nvml::Return found = by_index_(index, &device);
    // One of others, as a control group says.
    if (found == nvml::kNoPermission) continue;
    SIPHON_RETURN_IF_ERROR(Check(found, absl::StrCat("device ", index)));
    devices.push_back(device);
    NvmlDevice described;
    SIPHON_ASSIGN_OR_RETURN(described.bus_id, BusIdOf(device));
    std::array<char, nvml::kUuidBytes> uuid = {};
    SIPHON_RETURN_IF_ERROR(Check(uuid_(device, uuid.data(), uuid.size()), "a device's name"));
    described.uuid = uuid.data();
    bus_ids.insert(described.bus_id);
    server.devices.push_back(std::move(described));
  }
  for (size_t index = 0; index < devices.size(); ++index) {
    SIPHON_ASSIGN_OR_RETURN(server.devices[index].links, LinksOf(devices[index], bus_ids));
  }
  return server;
}

}  // namespace

std::string CanonicalBusId(absl::string_view bus_id) {
  constexpr size_t kDomain = 4;
  std::string text = absl::AsciiStrToLower(bus_id);
  const size_t colon = text.find(':');
  if (colon == std::string::npos || colon <= kDomain) return text;
  // NVML writes eight digits of which the last four count wherever one server is concerned.
  const size_t zeros = text.find_first_not_of('0');
  return zeros >= colon - kDomain ? text.substr(colon - kDomain) : text;
}

absl::StatusOr<NvmlServer> ReadNvml(const std::string& library) {
  SIPHON_ASSIGN_OR_RETURN(const std::unique_ptr<Nvml> nvml, Nvml::Load(library));
  return nvml->Read();
}

}  // namespace siphon
