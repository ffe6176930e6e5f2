#include "launch/run/why_no_cuda.h"

#include "absl/strings/str_cat.h"
#include "swap/device/load_cuda_module.h"

namespace siphon {

std::string WhyNoCuda() {
  const auto module = LoadCudaModule(FindCudaModule("/proc/self/exe"));
  if (!module.ok()) return std::string(module.status().message());
  const auto devices = (*module)->Devices();
  if (!devices.ok()) return std::string(devices.status().message());
  return absl::StrCat("no CUDA: there are devices (", devices->size(), ", the first one is a ",
                      devices->front().name,
                      "), but of workers on them only copies are built; workers compute on the CPU "
                      "here (pipeline.backend: cpu)");
}

}  // namespace siphon
