#ifndef SIPHON_PIPELINE_TRANSPORT_LOAD_NCCL_MODULE_H_
#define SIPHON_PIPELINE_TRANSPORT_LOAD_NCCL_MODULE_H_

#include <string>

#include "absl/status/statusor.h"
#include "pipeline/transport/nccl_module.h"

namespace siphon {

// The transport of the CUDA module at `path` (FindCudaModule), which stays loaded until the process
// ends. Errors: as LoadCudaModule.
absl::StatusOr<const NcclModule*> LoadNcclModule(const std::string& path);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_LOAD_NCCL_MODULE_H_
