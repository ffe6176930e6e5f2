#ifndef SIPHON_PLANNER_SIMULATOR_MESSAGES_HELD_H_
#define SIPHON_PLANNER_SIMULATOR_MESSAGES_HELD_H_

#include <vector>

#include "planner/schedule.h"
#include "planner/schedule_index.h"

namespace siphon {

// [worker][place]: of an action that sends (in a schedule of compute actions only, of one that
// makes what goes to another worker), the place of the action of the same program at whose end the
// sender is rid of what it sent, at any speed of workers and messages; the length of the program
// where that is only behind its last action. Of other actions their own place.
//
// A receiver has a message when it begins the F, B or I that takes it. The sender knows of that
// once it has itself taken something that was sent behind that action, there or through others.
// A channel (sender, receiver, direction) takes `room` messages beyond those that the receiver has;
// they are sent as soon as the sender looks after them, at the end of an action.
//
// Requires: `index` is the schedule's, whose actions are on the workers of their stages. What waits
// for an action that is not there is never taken. O(actions * workers).
std::vector<std::vector<int>> MessagesHeld(const Schedule& schedule, const ScheduleIndex& index,
                                           int room);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_MESSAGES_HELD_H_
