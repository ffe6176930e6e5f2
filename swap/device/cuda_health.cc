#include "swap/device/cuda_health.h"

#include <cuda_runtime_api.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "swap/device/cuda_status.h"

namespace siphon {
namespace {

constexpr char kGoOn[] = "then go on from the last checkpoint";

// What somebody does who runs the machine; of the errors that CUDA says to stick.
std::string Remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
      return absl::StrCat(
          "nvidia-smi -q -d ECC,ROW_REMAPPER counts such errors; reset the device, or leave it out "
          "by CUDA_VISIBLE_DEVICES, ",
          kGoOn);
    case cudaErrorNvlinkUncorrectable:
      return absl::StrCat(
          "nvidia-smi nvlink -e counts its wires' errors; reset the device, or leave it out by "
          "CUDA_VISIBLE_DEVICES, ",
          kGoOn);
    case cudaErrorLaunchTimeout:
      return absl::StrCat("a kernel ran longer than the driver allows on a device with a display; ",
                          "use another one, ", kGoOn);
    case cudaErrorIllegalAddress:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return "a kernel or a copy went wrong: go on from the last checkpoint; if it comes again, "
             "CUDA_LAUNCH_BLOCKING=1 names the call, and another device tells whether this one is "
             "broken";
    default:
      return absl::StrCat("the kernel log (dmesg, lines with Xid) says why, ", kGoOn);
  }
}

}  // namespace

absl::Status CudaHealth(int device) {
  static_cast<void>(cudaGetLastError());  // of a call that went wrong, and no more
  cudaError_t answer = cudaSetDevice(device);
  if (answer == cudaSuccess) answer = cudaStreamQuery(cudaStreamPerThread);
  if (answer == cudaSuccess || answer == cudaErrorNotReady) return absl::OkStatus();
  char bus_id[32] = {};
  const bool has_place = cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), device) == cudaSuccess;
  return absl::InternalError(absl::StrCat("device ", device, has_place ? " at " : "", bus_id,
                                          " does no more for this process, since ",
                                          CudaErrorText(answer), "; ", Remedy(answer)));
}

}  // namespace siphon
