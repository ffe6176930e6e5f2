#ifndef SIPHON_PLANNER_PUBLISHED_MPRESS_FIGURE9_H_
#define SIPHON_PLANNER_PUBLISHED_MPRESS_FIGURE9_H_

#include <string>

#include "absl/status/statusor.h"
#include "planner/published/mpress_instance.h"
#include "planner/units.h"

namespace siphon {

// GPT-15.4B under the mpress strategy, with device mapping and striping of D2D swaps switched on
// one after the other (MPress, Figure 9 and section IV.D).
struct MpressFigure9 {
  std::string machine;
  Nanos plain;     // step time: workers in order, each tensor on one lender
  Nanos mapped;    // workers where the search puts them
  Nanos striped;   // in order again, tensors in stripes
  Nanos complete;  // both
};

// Errors: as MakeMpressInstance and PlanMpress.
absl::StatusOr<MpressFigure9> RunMpressFigure9(const Topology& topology, const MpressTools& tools);

// Gains over `plain` in percent beside the paper's for boards like this one: +17.4 % with mapping
// and +33.3 % then with striping too on DGX-1, 0 and +11.0 % on the A100 server. The 33.3 % are
// read as both together; the text allows striping alone as well, so both are printed.
std::string MpressFigure9Text(const MpressFigure9& ours, CopyEngines engines);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PUBLISHED_MPRESS_FIGURE9_H_
