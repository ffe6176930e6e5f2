#include "pipeline/transport/nccl_module.h"

#include <utility>

#include "pipeline/transport/nccl_transport.h"

namespace siphon {
namespace {

class ModuleOfThisObject final : public NcclModule {
 public:
  absl::StatusOr<NcclTransportMade> MakeTransport(const NcclTransportOptions& options,
                                                  std::unique_ptr<Transport> host,
                                                  LivenessCheck check) const override {
    return MakeNcclTransport(options, std::move(host), std::move(check));
  }
};

}  // namespace
}  // namespace siphon

// What dlsym finds. Null: the caller was compiled against other headers.
extern "C" __attribute__((visibility("default"))) const siphon::NcclModule* siphon_nccl_module(
    int interface) {
  static const siphon::ModuleOfThisObject module;
  return interface == siphon::kNcclModuleInterface ? &module : nullptr;
}
