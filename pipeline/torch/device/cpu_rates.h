#ifndef SIPHON_PIPELINE_TORCH_CPU_RATES_H_
#define SIPHON_PIPELINE_TORCH_CPU_RATES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "planner/units.h"

namespace siphon {

// What LibTorch achieves here.
struct CpuRates {
  int64_t product_flops = 0;      // a second, of large float32 matrix products
  BytesPerSecond copy_bandwidth;  // bytes read and written, of blocks larger than the caches
  Nanos operation_overhead;       // of an operator on one number
};

// Measures them with so many threads, in about two seconds: medians of repeated operations, after
// one that is not counted. Errors: what LibTorch throws.
absl::StatusOr<CpuRates> MeasureCpuRates(int threads);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_CPU_RATES_H_
