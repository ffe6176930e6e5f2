#include "pipeline/torch/device/load_torch_cuda.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace siphon {

absl::Status NoTorchCuda(absl::string_view because) {
  return absl::FailedPreconditionError(absl::StrCat(
      "no CUDA: ", because, "; workers compute on the CPU here (pipeline.backend: cpu)"));
}

std::string FindTorchCudaModule(const std::string& cuda_module) {
  constexpr char kName[] = "siphon_torch_cuda.so";
  if (cuda_module.empty()) return "";
  const std::filesystem::path folder = std::filesystem::path(cuda_module).parent_path();
  std::error_code error;
  for (const std::filesystem::path& place : {folder, folder / "../pipeline/torch"}) {
    const std::filesystem::path file = place / kName;
    if (std::filesystem::exists(file, error)) return file.lexically_normal();
  }
  return "";
}

absl::StatusOr<const TorchCudaModule*> LoadTorchCuda(const std::string& path) {
  if (path.empty()) {
    return NoTorchCuda("this build has no siphon_torch_cuda.so, LibTorch for CUDA was not there");
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return NoTorchCuda(dlerror());
  using Entry = const TorchCudaModule* (*)(int);
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "siphon_torch_cuda_module"));
  const TorchCudaModule* const module = entry == nullptr ? nullptr : entry(kTorchCudaInterface);
  if (module == nullptr) return NoTorchCuda(absl::StrCat(path, " is of another version"));
  return module;
}

}  // namespace siphon
