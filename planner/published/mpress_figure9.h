#ifndef SIPHON_PLANNER_PUBLISHED_MPRESS_FIGURE9_H_
#define SIPHON_PLANNER_PUBLISHED_MPRESS_FIGURE9_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/published/mpress_instance.h"
#include "planner/published/mpress_run.h"
#include "planner/units.h"

namespace siphon {

// One plan of Figure 9.
struct MpressFigure9Bar {
  Nanos step_time;
  MemorySaved recomputed;
  MemorySaved host;
  MemorySaved peers;
};

// A model under the mpress strategy, with device mapping and striping of D2D swaps switched on one
// after the other (MPress, Figure 9 and section IV.D).
struct MpressFigure9 {
  std::string model;
  std::string machine;
  CopyEngines engines = CopyEngines::kOnePerPeer;
  MpressFigure9Bar plain;     // workers in order, each tensor on one lender
  MpressFigure9Bar mapped;    // workers where the search puts them
  MpressFigure9Bar striped;   // in order again, tensors in stripes
  MpressFigure9Bar complete;  // both
};

// The model of the paper's figure, and one of which more finds room on lenders.
inline constexpr char kFigure9Model[] = "GPT-15.4B";
inline constexpr char kFigure9SmallerModel[] = "GPT-10.3B";

// `model` names a row of Table II. Errors: as FindMpressRow, MakeMpressInstance and PlanMpress.
absl::StatusOr<MpressFigure9> RunMpressFigure9(absl::string_view model, const Topology& topology,
                                               const MpressTools& tools);

// Gains over `plain` in percent, for the paper's model beside the paper's for boards like this one:
// +17.4 % with mapping and +33.3 % then with striping too on DGX-1, 0 and +11.0 % on the A100
// server. The 33.3 % are read as both together, so that striping adds 13.5 % to mapping; the text
// allows them to be striping's own as well, so both are printed. With what each plan has on
// lenders, as that is all that mapping and striping can speed up.
std::string MpressFigure9Text(const MpressFigure9& ours);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PUBLISHED_MPRESS_FIGURE9_H_
