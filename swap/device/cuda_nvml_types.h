#ifndef SIPHON_SWAP_DEVICE_CUDA_NVML_TYPES_H_
#define SIPHON_SWAP_DEVICE_CUDA_NVML_TYPES_H_

// The few types of NVML's binary interface that are used, under names of our own: its header comes
// with toolkits only, the library with every driver. Layouts and numbers are those of NVML's API
// reference, which a driver keeps for as long as it has the functions' names.

namespace siphon::nvml {

using Device = struct OpaqueDevice*;
using Return = int;

inline constexpr Return kSuccess = 0;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;

inline constexpr unsigned kMostLinks = 18;        // NVML_NVLINK_MAX_LINKS
inline constexpr int kCapabilityP2p = 0;          // NVML_NVLINK_CAP_P2P_SUPPORTED
inline constexpr unsigned kFieldLinkState = 165;  // NVML_FI_DEV_NVLINK_GET_STATE
inline constexpr int kRemoteIsDevice = 0;         // NVML_NVLINK_DEVICE_TYPE_GPU
inline constexpr int kRemoteIsSwitch = 2;         // NVML_NVLINK_DEVICE_TYPE_SWITCH
inline constexpr unsigned kUuidBytes = 96;
inline constexpr unsigned kVersionBytes = 80;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68, "as NVML has it");

struct FieldValue {
  unsigned field;
  unsigned scope;  // the link
  long long timestamp;
  long long latency_us;
  int value_type;
  Return answer;
  union {
    unsigned as_unsigned;
    unsigned long long as_unsigned_long;
  } value;
};
static_assert(sizeof(FieldValue) == 40, "as NVML has it");

}  // namespace siphon::nvml

#endif  // SIPHON_SWAP_DEVICE_CUDA_NVML_TYPES_H_
