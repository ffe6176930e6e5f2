#ifndef SIPHON_PIPELINE_TRANSPORT_NCCL_COMMUNICATOR_H_
#define SIPHON_PIPELINE_TRANSPORT_NCCL_COMMUNICATOR_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipeline/transport/nccl_api.h"
#include "pipeline/transport/nccl_patience.h"
#include "swap/device/cuda_events.h"

namespace siphon {

enum class NcclEnd { kSender = 0, kReceiver = 1 };  // also the rank

// One end of one channel: a communicator of two ranks, which does not block, and the stream that
// its messages are ordered on.
//
// Thread-safety: one thread.
// Invariant: once aborted or closed, no call of NCCL touches it any more.
class NcclCommunicator {
 public:
  struct Options {
    NcclEnd end = NcclEnd::kSender;
    int device = 0;
    int max_ctas = 1;
    std::string name;  // of the channel, for messages
  };

  // Joins the other end. Errors: those of NCCL and of the wait.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Join(const NcclApi& api,
                                                                const NcclUniqueId& id,
                                                                const Options& options,
                                                                NcclPatience wait);
  // Aborts what is open, and waits for the stream for a short time, so that nothing touches
  // anybody's memory any more. Requires: no message of another one of the device is under way.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Puts one message, all parts at once, on the stream, behind what `after` has until now. Returns
  // an event of `events` that fires when the parts have gone or are there. Requires: a part, none
  // of them empty. Errors: as Join.
  absl::StatusOr<cudaEvent_t> Launch(const std::vector<absl::Span<std::byte>>& parts,
                                     std::optional<void*> after, CudaEventPool& events,
                                     NcclPatience wait);

  // What NCCL has met in its own threads. Errors: Unavailable, Internal.
  absl::Status Check() const;

  bool is_open() const { return handle_ != nullptr; }
  // Ends what is under way, here only: the other end has to do so as well. All communicators of a
  // device at once: an abort gives memory back and waits for all that the device runs, so that one
  // after the other the first would wait for messages that end when they are aborted themselves.
  static void AbortTogether(const std::vector<NcclCommunicator*>& communicators);
  // Both of these at all communicators one after the other: lets messages leave, and frees. What
  // fails is aborted.
  void StartClosing();
  void Close(NcclPatience wait);

 private:
  NcclCommunicator(const NcclApi& api, const Options& options) : api_(api), options_(options) {}

  void Abort();
  // Until NCCL has done what was asked for.
  absl::Status Settle(NcclResult result, absl::string_view doing, NcclPatience& wait) const;

  const NcclApi& api_;
  const Options options_;
  NcclHandle handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
  NcclResult closing_ = kNcclSuccess;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_NCCL_COMMUNICATOR_H_
