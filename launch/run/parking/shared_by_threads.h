#ifndef SIPHON_LAUNCH_RUN_PARKING_SHARED_BY_THREADS_H_
#define SIPHON_LAUNCH_RUN_PARKING_SHARED_BY_THREADS_H_

#include <cstddef>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launch/run/parking/parking_room.h"
#include "planner/ids.h"
#include "planner/status.h"
#include "planner/units.h"

namespace siphon {

// Memory that workers of one process share, as they ask for it together (WorkerSeat::more_shared):
// the n-th time each of them gets the same.
//
// Thread-safety: any thread may call. What it gave lives as long as this.
class SharedByThreads {
 public:
  explicit SharedByThreads(int workers) : asked_(static_cast<size_t>(workers)) {}

  // Errors: as HostMapping::Make, for all workers that time.
  absl::StatusOr<absl::Span<std::byte>> More(WorkerId worker, Bytes bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t time = asked_[static_cast<size_t>(worker.value)]++;
    if (time == given_.size()) given_.push_back(HostMapping::Make(bytes));
    SIPHON_RETURN_IF_ERROR(given_[time].status());
    return given_[time]->bytes();
  }

 private:
  std::mutex mutex_;
  std::vector<size_t> asked_ ABSL_GUARDED_BY(mutex_);  // [worker]: how many times
  std::vector<absl::StatusOr<HostMapping>> given_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_PARKING_SHARED_BY_THREADS_H_
