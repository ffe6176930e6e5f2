#include "pipeline/transport/nccl_communicator.h"

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/cuda_status.h"

namespace siphon {
namespace {

// Beyond what devices know is cut to what they know: before all computation that waits.
constexpr int kMostUrgent = -100;
// Kernels see within microseconds that their communicator was aborted.
constexpr std::chrono::seconds kStreamPatience{10};

bool IsIdleSoon(cudaStream_t stream) {
  const auto until = std::chrono::steady_clock::now() + kStreamPatience;
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Join(const NcclApi& api,
                                                                         const NcclUniqueId& id,
                                                                         const Options& options,
                                                                         NcclPatience wait) {
  const CudaDeviceScope scope(options.device);
  SIPHON_RETURN_IF_ERROR(scope.status());
  auto made = std::unique_ptr<NcclCommunicator>(new NcclCommunicator(api, options));
  SIPHON_CUDA_RETURN_IF_ERROR(
      cudaStreamCreateWithPriority(&made->stream_, cudaStreamNonBlocking, kMostUrgent),
      absl::StrCat(options.name, ": making a stream"));
  NcclConfig config;
  config.min_ctas = 1;
  config.max_ctas = options.max_ctas;
  const NcclResult result =
      api.init_rank(&made->handle_, 2, id, static_cast<int>(options.end), &config);
  SIPHON_RETURN_IF_ERROR(made->Settle(result, "joining the communicator", wait));
  return made;
}

NcclCommunicator::~NcclCommunicator() {
  Abort();
  if (stream_ == nullptr) return;
  if (IsIdleSoon(stream_)) {
    static_cast<void>(cudaStreamDestroy(stream_));
  } else {
    std::fprintf(stderr, "siphon: %s: NCCL did not end what was under way\n",
                 options_.name.c_str());
  }
  static_cast<void>(cudaGetLastError());
}

absl::StatusOr<cudaEvent_t> NcclCommunicator::Launch(
    const std::vector<absl::Span<std::byte>>& parts, std::optional<void*> after,
    CudaEventPool& events, NcclPatience wait) {
  SIPHON_CHECK(is_open() && !parts.empty(), "messages go over open communicators");
  const CudaDeviceScope scope(options_.device);
  SIPHON_RETURN_IF_ERROR(scope.status());
  if (after.has_value()) {
    SIPHON_ASSIGN_OR_RETURN(const cudaEvent_t ready,
                            events.Record(static_cast<cudaStream_t>(*after)));
    const cudaError_t ordered = cudaStreamWaitEvent(stream_, ready, 0);
    events.GiveBack(ready);  // the stream waits for this record, not for the next one
    SIPHON_CUDA_RETURN_IF_ERROR(ordered,
                                absl::StrCat(options_.name, ": waiting for the computation"));
  }
  const bool sends = options_.end == NcclEnd::kSender;
  const absl::string_view doing = sends ? "starting a send" : "starting a receive";
  SIPHON_RETURN_IF_ERROR(NcclStatus(api_, api_.group_start(), handle_, doing));
  NcclResult worst = kNcclSuccess;
  for (const absl::Span<std::byte> part : parts) {
    const NcclResult put =
        sends ? api_.send(part.data(), part.size(), kNcclBytes, 1, handle_, stream_)
              : api_.receive(part.data(), part.size(), kNcclBytes, 0, handle_, stream_);
    if (worst == kNcclSuccess && put != kNcclInProgress) worst = put;
  }
  const NcclResult ended = api_.group_end();
  SIPHON_RETURN_IF_ERROR(Settle(worst == kNcclSuccess ? ended : worst, doing, wait));
  // Only now is the message in the stream.
  return events.Record(stream_);
}

absl::Status NcclCommunicator::Check() const {
  if (!is_open()) return absl::OkStatus();
  NcclResult state = kNcclSuccess;
  const NcclResult asked = api_.async_error(handle_, &state);
  return NcclStatus(api_, asked == kNcclSuccess ? state : asked, handle_, options_.name);
}

void NcclCommunicator::AbortTogether(const std::vector<NcclCommunicator*>& communicators) {
  if (communicators.empty()) return;
  const NcclApi& api = communicators.front()->api_;
  const CudaDeviceScope scope(communicators.front()->options_.device);
  static_cast<void>(api.group_start());
  for (NcclCommunicator* communicator : communicators) communicator->Abort();
  static_cast<void>(api.group_end());
}

void NcclCommunicator::Abort() {
  if (!is_open()) return;
  static_cast<void>(api_.abort(std::exchange(handle_, nullptr)));
}

void NcclCommunicator::StartClosing() {
  if (is_open()) closing_ = api_.finalize(handle_);
}

void NcclCommunicator::Close(NcclPatience wait) {
  if (!is_open()) return;
  if (!Settle(closing_, "leaving the communicator", wait).ok()) return Abort();
  static_cast<void>(api_.destroy(std::exchange(handle_, nullptr)));
}

absl::Status NcclCommunicator::Settle(NcclResult result, absl::string_view doing,
                                      NcclPatience& wait) const {
  while (result == kNcclInProgress) {
    NcclResult state = kNcclInProgress;
    const NcclResult asked = api_.async_error(handle_, &state);
    result = asked == kNcclSuccess ? state : asked;
    if (result != kNcclInProgress) break;
    SIPHON_RETURN_IF_ERROR(Annotate(wait.Turn(), absl::StrCat(options_.name, ": ", doing)));
  }
  return NcclStatus(api_, result, handle_, absl::StrCat(options_.name, ": ", doing));
}

}  // namespace siphon
