#ifndef SIPHON_TESTS_GPU_ACTIVITY_COPY_OVERLAP_H_
#define SIPHON_TESTS_GPU_ACTIVITY_COPY_OVERLAP_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/units.h"
#include "tests/gpu/activity/device_activity.h"

namespace siphon {

// Copies of one kind that came to one device by one channel.
struct CopySummary {
  DeviceActivity::Kind kind = DeviceActivity::Kind::kOtherCopy;
  DeviceActivity::Engine engine = DeviceActivity::Engine::kOther;
  int device = 0;
  int channel = 0;
  int copies = 0;
  Bytes bytes;
  Nanos busy;            // some copy was under way
  Nanos beside_kernels;  // and a kernel on the same device as well
  Bytes largest;
  friend bool operator==(const CopySummary&, const CopySummary&) = default;
};

// What one process did, in any order; summaries by device, kind, channel. Copies on streams that
// run kernels are left out: LibTorch's own, between kernels and not beside them. Pure.
std::vector<CopySummary> SummariseCopies(const std::vector<DeviceActivity>& activities);

// The summaries as a table in Markdown.
std::string TableOf(const std::vector<CopySummary>& summaries);

// Copies at least so large are tensors'; smaller ones may go by the compute units and do no harm.
inline constexpr Bytes kTensorCopy{1 << 20};
// Of the time of copies that swap tensors: beside kernels, at least.
inline constexpr double kLeastBesideKernels = 0.5;

// Whether tensors that went to the host, to other devices and back did so by copy engines, and
// beside kernels for the most part. Errors: FailedPrecondition with each that did not, or when no
// such copy was recorded.
absl::Status CheckCopies(const std::vector<CopySummary>& summaries);

}  // namespace siphon

#endif  // SIPHON_TESTS_GPU_ACTIVITY_COPY_OVERLAP_H_
