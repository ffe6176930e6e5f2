#ifndef SIPHON_LAUNCH_PROFILE_MEASURED_COSTS_H_
#define SIPHON_LAUNCH_PROFILE_MEASURED_COSTS_H_

#include <array>
#include <vector>

#include "planner/action.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/model_profile.h"
#include "planner/stage_partition.h"
#include "planner/timeline.h"
#include "planner/topology.h"
#include "swap/parking_layout.h"

namespace siphon {

// What the actions of one stage took in a step, all microbatches together, without waits: by
// ActionKind.
using ActionTimes = std::array<Nanos, kActionKinds>;

// [stage] of so many, of all these workers together.
std::vector<ActionTimes> BusyByStage(const std::vector<WorkerTimeline>& workers, int stages);

// How many times as long a stage took for what its costs say; 1: as they say, or nothing is known.
struct StagePace {
  double forward = 1;
  double recompute = 1;
  double input_backward = 1;
  double weight_backward = 1;
  double whole_backward = 1;
  double step = 1;  // of the optimizer
  friend bool operator==(const StagePace&, const StagePace&) = default;
};

// [stage]. Both of one program, so that what workers take from each other (shared cores) is in both
// and cancels. Where a backward is not split its halves go at its pace, and the other way round; a
// kind that is not seen goes at that of the whole stage, recomputation at that of the forward.
// Requires: as many stages in both.
std::vector<StagePace> PacesOf(const std::vector<ActionTimes>& predicted,
                               const std::vector<ActionTimes>& measured);

// The profile with the times of each layer at the pace of its stage. Bytes stay. Requires: the
// partition is of the profile's layers, with a pace for each stage.
ModelProfile AtPace(ModelProfile profile, const StagePartition& partition,
                    const std::vector<StagePace>& paces);

// How many times as long a link of one device took for what went over it.
struct LinkPace {
  DeviceId owner;  // of what moves
  ParkingPlace place;
  double factor = 1;
  Bytes bytes;  // that went over it in the steps that this is from
  friend bool operator==(const LinkPace&, const LinkPace&) = default;
};

// The topology with rates that these links keep to: of the two directions between owner and lender;
// of the uplink that some share, and of the drive, at the mean of their paces by bytes. What
// nothing went over stays as it is.
Topology AtPace(Topology topology, const std::vector<LinkPace>& links);

// What a run was found to take, other than its costs say.
struct MeasuredCosts {
  std::vector<StagePace> stages;
  std::vector<LinkPace> links;
  DeviceMapping mapping;  // of the run: tensors live where they are
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_MEASURED_COSTS_H_
