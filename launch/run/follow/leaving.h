#ifndef SIPHON_LAUNCH_RUN_FOLLOW_LEAVING_H_
#define SIPHON_LAUNCH_RUN_FOLLOW_LEAVING_H_

#include <map>
#include <string>

#include "launch/profile/fall_back.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"

namespace siphon {

// A place that a worker parks in no longer, since it is refused or too slow.
struct Leaving {
  LeftPlace left;
  WorkerId says;           // who does not give the place, or finds it slow
  double slow_factor = 0;  // 0: it is refused
};

// "worker 0: the link to worker 3 is 7.2x slower than planned".
std::string ReasonOf(const Leaving& leaving, const DeviceMapping& mapping);

// Of groups by where they go instead: "4 groups go to the host and 1 group is computed again".
std::string WhereGroupsGo(const std::map<Placement, int>& moved);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_FOLLOW_LEAVING_H_
