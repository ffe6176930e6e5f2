#ifndef SIPHON_PIPELINE_TRANSPORT_PACED_CHECK_H_
#define SIPHON_PIPELINE_TRANSPORT_PACED_CHECK_H_

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "pipeline/transport/transport.h"

namespace siphon {

// How often a wait looks whether its peers are still there: often enough that a failure ends a job
// at once, seldom enough that the check costs nothing.
inline constexpr std::chrono::milliseconds kLivenessInterval{2};

// A liveness check that may be asked at every turn of a waiting loop and runs every
// kLivenessInterval only.
//
// Thread-safety: one thread.
class PacedCheck {
 public:
  // An empty `check` is always OK.
  explicit PacedCheck(LivenessCheck check) : check_(std::move(check)) {}

  absl::Status CheckIfDue() {
    if (!check_) return absl::OkStatus();
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kLivenessInterval) return absl::OkStatus();
    last_ = now;
    return check_();
  }

 private:
  LivenessCheck check_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_PACED_CHECK_H_
