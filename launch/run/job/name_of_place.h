#ifndef SIPHON_LAUNCH_RUN_JOB_NAME_OF_PLACE_H_
#define SIPHON_LAUNCH_RUN_JOB_NAME_OF_PLACE_H_

#include <string>

#include "planner/memory_plan.h"
#include "swap/parking_layout.h"

namespace siphon {

// "worker 3", "device 5" where no worker is, "the host", "the drives".
std::string NameOfPlace(const DeviceMapping& mapping, const ParkingPlace& place);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_JOB_NAME_OF_PLACE_H_
