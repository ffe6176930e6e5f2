#include "pipeline/transport/nccl_api.h"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

absl::Status NoNccl(absl::string_view because) {
  return absl::FailedPreconditionError(absl::StrCat(
      "no NCCL: ", because, "; it comes with LibTorch for CUDA (pip package nvidia-nccl)"));
}

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

absl::StatusOr<std::unique_ptr<const NcclApi>> Load(const std::string& name) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return NoNccl(dlerror());
  auto api = std::make_unique<NcclApi>();
  const bool complete =
      Find(library, "ncclGetVersion", api->get_version) &&
      Find(library, "ncclGetUniqueId", api->get_unique_id) &&
      Find(library, "ncclGetErrorString", api->error_text) &&
      Find(library, "ncclGetLastError", api->last_error) &&
      Find(library, "ncclCommInitRankConfig", api->init_rank) &&
      Find(library, "ncclCommGetAsyncError", api->async_error) &&
      Find(library, "ncclGroupStart", api->group_start) &&
      Find(library, "ncclGroupEnd", api->group_end) && Find(library, "ncclSend", api->send) &&
      Find(library, "ncclRecv", api->receive) && Find(library, "ncclCommFinalize", api->finalize) &&
      Find(library, "ncclCommDestroy", api->destroy) && Find(library, "ncclCommAbort", api->abort);
  if (!complete) return NoNccl(dlerror());
  if (api->get_version(&api->version) != kNcclSuccess || api->version < kNcclLeastVersion) {
    return NoNccl(absl::StrCat(name, " is version ", NcclVersionText(api->version), ", ",
                               NcclVersionText(kNcclLeastVersion), " or later is needed"));
  }
  return api;
}

}  // namespace

std::string NcclVersionText(int version) {
  return absl::StrCat(version / 10'000, ".", version / 100 % 100, ".", version % 100);
}

absl::StatusOr<const NcclApi*> LoadNccl(const std::string& library) {
  static auto* const mutex = new std::mutex();
  static auto* const loaded = new std::map<std::string, std::unique_ptr<const NcclApi>>();
  const std::lock_guard lock(*mutex);
  if (const auto found = loaded->find(library); found != loaded->end()) return found->second.get();
  absl::StatusOr<std::unique_ptr<const NcclApi>> api = Load(library);
  if (!api.ok()) return api.status();
  return ((*loaded)[library] = *std::move(api)).get();
}

absl::Status NcclStatus(const NcclApi& api, NcclResult result, NcclHandle communicator,
                        absl::string_view doing) {
  if (result == kNcclSuccess || result == kNcclInProgress) return absl::OkStatus();
  const char* const detail = api.last_error(communicator);
  const std::string text = absl::StrCat(
      doing, ": NCCL: ", api.error_text(result), " (", static_cast<int>(result), ")",
      detail == nullptr || *detail == '\0' ? "" : ": ", detail == nullptr ? "" : detail);
  return result == kNcclRemoteError || result == kNcclSystemError ? absl::UnavailableError(text)
                                                                  : absl::InternalError(text);
}

}  // namespace siphon
