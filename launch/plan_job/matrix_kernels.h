#ifndef SIPHON_LAUNCH_PLAN_JOB_MATRIX_KERNELS_H_
#define SIPHON_LAUNCH_PLAN_JOB_MATRIX_KERNELS_H_

#include "absl/strings/string_view.h"
#include "planner/memory/memory_estimate.h"

namespace siphon {

// Of the processor that /proc/cpuinfo, whose text this is, tells of.
MatrixKernels MatrixKernelsOf(absl::string_view cpuinfo);

// Of this machine's; kPairs where it does not say.
MatrixKernels MatrixKernelsHere();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PLAN_JOB_MATRIX_KERNELS_H_
