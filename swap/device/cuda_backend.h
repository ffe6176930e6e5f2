#ifndef SIPHON_SWAP_DEVICE_CUDA_BACKEND_H_
#define SIPHON_SWAP_DEVICE_CUDA_BACKEND_H_

#include <cuda_runtime_api.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "swap/device/cpu_backend.h"
#include "swap/device/cuda_events.h"
#include "swap/device/cuda_options.h"
#include "swap/device/cuda_tensor_checksums.h"
#include "swap/device/cuda_way_queue.h"
#include "swap/device/device_backend.h"

namespace siphon {

// Copies of a device by its copy engines: a stream for each way in each lane, and a thread that
// gives the streams a few chunks at a time and sees them through. It polls, so that Abort ends what
// has not begun even where the worker's stream hangs, and so that one thread serves all streams.
//
// A copy begins once all is done that the worker's stream was given before StartCopy; the host
// hears of its end by Test and Wait, and gives the stream its next work then. No stream waits for
// another one, and no tensor is recorded on a stream (recordStream): whoever started a copy keeps
// its memory until it is complete.
//
// Parts on a drive go by threads of their own, as on the CPU.
//
// Thread-safety: one thread, the worker's.
class CudaBackend final : public DeviceBackend {
 public:
  // Errors: Internal, of the runtime. Requires: every link has a way; no way is the drive's.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Make(const CudaBackendOptions& options);
  // As Abort; then the streams go.
  ~CudaBackend() override;
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  CopyEvent StartCopy(CopyLane lane, std::vector<CopyPart> parts) override;
  absl::StatusOr<bool> Test(CopyEvent event) override;
  absl::Status Wait(CopyEvent event) override;
  void Abort() override;
  std::vector<CopyLinkUse> TakeUse() override;
  void SlowDown(CopyLinkId link, double factor) override;
  // By a kernel where the tensors are; waits for the worker's stream first.
  absl::StatusOr<std::vector<uint64_t>> Checksums(
      absl::Span<const absl::Span<const std::byte>> tensors) override;

 private:
  struct Share {
    size_t queue = 0;  // kDrive: none
    std::vector<CopyPart> parts;
  };
  // A copy between StartCopy and the streams.
  struct Waiting {
    CopyEvent copy;
    CopyLane lane;
    std::vector<Share> shares;
    std::optional<cudaEvent_t> ready;
  };
  struct Pending {
    int shares = 0;
    absl::Status status;
  };
  // A share that drive_ moves.
  struct OnDrive {
    CopyEvent copy;
    CopyEvent there;
  };

  explicit CudaBackend(const CudaBackendOptions& options);
  std::vector<Share> Cut(CopyLane lane, std::vector<CopyPart> parts) const;
  absl::StatusOr<bool> TestLocked(CopyEvent event) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The thread.
  void Run();
  bool Release(Waiting& waiting, std::vector<FinishedShare>& finished);
  std::vector<FinishedShare> Advance(bool give_up);
  void AdvanceDrive(bool give_up, std::vector<FinishedShare>& finished);
  bool Moves() const;
  void CountUse() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CudaBackendOptions options_;
  CudaEventPool events_;
  // The thread's.
  std::vector<std::unique_ptr<CudaWayQueue>> queues_;  // [lane * ways + way]
  std::unique_ptr<CpuBackend> drive_;
  std::deque<OnDrive> on_drive_;
  std::deque<Waiting> waiting_;  // in the order of StartCopy

  // The worker's.
  std::unique_ptr<CudaTensorChecksums> checksums_;  // null: nobody has asked for any

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable completed_;
  int started_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Waiting> incoming_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int, absl::Status> failed_ ABSL_GUARDED_BY(mutex_);
  std::vector<CopyLinkUse> use_ ABSL_GUARDED_BY(mutex_);         // [CopyLinkId]
  std::map<CopyLinkId, double> slowed_ ABSL_GUARDED_BY(mutex_);  // not told to queues_ yet
  bool give_up_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_CUDA_BACKEND_H_
