#ifndef SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_STRIPES_H_
#define SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_STRIPES_H_

#include <optional>
#include <vector>

#include "planner/memory_plan.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// Whether MPress cuts a tensor into stripes (section III.C), or gives it to one lender whole, as in
// the first bars of Figure 9.
enum class MpressStriping { kOneLender, kStriped };

struct Lender {
  DeviceId device;
  BytesPerSecond rate;  // of the link out; 0: no limit
  Bytes spare;
  friend bool operator==(const Lender&, const Lender&) = default;
};

// A tensor that is there `copies` times at once.
struct StripedTensor {
  Bytes bytes;
  int copies = 1;
};

// The tensor on the lenders, within their spare bytes: in proportion to the rates of the links
// where each peer has a copy engine of its own (asymmetric boards), in equal parts where all share
// one (symmetric ones); what does not fit on one goes to the others. With kOneLender to the one
// with the fastest link, then the most room. Stripes but the last are whole granules. Nothing
// where the lenders have too little room. Requires: copies >= 1, granule > 0.
std::optional<std::vector<Stripe>> StripesWithin(const StripedTensor& tensor,
                                                 std::vector<Lender> lenders, CopyEngines engines,
                                                 MpressStriping striping, Bytes granule);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_STRIPES_H_
