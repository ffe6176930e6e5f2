#include "swap/device/load_cuda_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

constexpr absl::string_view kInstead = "workers compute on the CPU here (pipeline.backend: cpu)";

absl::Status NoModule(absl::string_view because) {
  return absl::FailedPreconditionError(absl::StrCat("no CUDA: ", because, "; ", kInstead));
}

}  // namespace

std::string FindCudaModule(const std::string& program) {
  constexpr char kName[] = "siphon_cuda.so";
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(program, error);
  if (error) return "";
  const std::filesystem::path folder = real.parent_path();
  // siphon of a build folder; bin/siphon of a prefix.
  std::vector<std::filesystem::path> places = {folder, folder / "swap", folder / "../lib/siphon"};
  for (const auto& entry : std::filesystem::directory_iterator(folder / "../lib", error)) {
    places.push_back(entry.path() / "siphon");  // lib/x86_64-linux-gnu
  }
  for (const std::filesystem::path& place : places) {
    const std::filesystem::path file = place / kName;
    if (std::filesystem::exists(file, error)) return file.lexically_normal();
  }
  return "";
}

void NumberCudaDevicesByBus() { setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", /*overwrite=*/0); }

absl::StatusOr<const CudaModule*> LoadCudaModule(const std::string& path) {
  if (path.empty()) {
    return NoModule("this build has no CUDA module, there was no CUDA toolkit when it was made");
  }
  // Names of its own only: what it shares with the program, it brings along.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return NoModule(dlerror());
  using Entry = const CudaModule* (*)(int);
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "siphon_cuda_module"));
  const CudaModule* const module = entry == nullptr ? nullptr : entry(kCudaModuleInterface);
  if (module == nullptr) return NoModule(absl::StrCat(path, " is of another version"));
  return module;
}

}  // namespace siphon
