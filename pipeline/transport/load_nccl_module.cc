#include "pipeline/transport/load_nccl_module.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/load_cuda_module.h"

namespace siphon {

absl::StatusOr<const NcclModule*> LoadNcclModule(const std::string& path) {
  SIPHON_RETURN_IF_ERROR(LoadCudaModule(path).status());
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  using Entry = const NcclModule* (*)(int);
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "siphon_nccl_module"));
  const NcclModule* const module = entry == nullptr ? nullptr : entry(kNcclModuleInterface);
  if (module != nullptr) return module;
  return absl::FailedPreconditionError(
      absl::StrCat("no transport over NCCL: ", path, " is of another version"));
}

}  // namespace siphon
