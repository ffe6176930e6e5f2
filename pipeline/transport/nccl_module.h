#ifndef SIPHON_PIPELINE_TRANSPORT_NCCL_MODULE_H_
#define SIPHON_PIPELINE_TRANSPORT_NCCL_MODULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "pipeline/transport/nccl_options.h"
#include "pipeline/transport/transport.h"

namespace siphon {

// What the shared object siphon_cuda gives of transports; whoever uses it knows neither CUDA nor
// NCCL and links none (load_nccl_module.h).
class NcclModule {
 public:
  virtual ~NcclModule() = default;
  // As MakeNcclTransport (nccl_transport.h).
  virtual absl::StatusOr<NcclTransportMade> MakeTransport(const NcclTransportOptions& options,
                                                          std::unique_ptr<Transport> host,
                                                          LivenessCheck check) const = 0;
};

// Of this header and those that it includes; a module with another number is refused.
inline constexpr int kNcclModuleInterface = 2;

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_NCCL_MODULE_H_
