#ifndef SIPHON_PLANNER_PUBLISHED_MPRESS_REPORT_H_
#define SIPHON_PLANNER_PUBLISHED_MPRESS_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/published/mpress_instance.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {

// The servers of section IV.A, as topologies.
struct MpressServers {
  Topology bert;  // p3dn.24xlarge
  Topology gpt;   // a like DGX-1 with more host memory and NVMe
  Topology a100;  // what the paper calls DGX-2
};

// Tables III and IV, Figures 7, 8 and 9, each with ours beside the paper's. `strategies` are the
// columns of Figures 7 and 8; those of them called mpress and auto are the plans of Table IV.
// Errors: as RunFigure and RunMpressFigure9.
absl::StatusOr<std::string> MpressReport(const MpressServers& servers, const MpressTools& tools,
                                         const std::vector<MemoryStrategy>& strategies);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PUBLISHED_MPRESS_REPORT_H_
