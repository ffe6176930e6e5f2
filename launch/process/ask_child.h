#ifndef SIPHON_LAUNCH_PROCESS_ASK_CHILD_H_
#define SIPHON_LAUNCH_PROCESS_ASK_CHILD_H_

#include <functional>
#include <optional>
#include <string>

#include "planner/units.h"

namespace siphon {

// What `answer` returns in a child of this process, which ends then: what a library takes of
// devices on the way, or a driver that hangs, is gone with it. None when there is no answer within
// `patience` from one part of it to the next. Requires: no other thread of this process holds what
// `answer` needs.
std::optional<std::string> AskChild(Nanos patience, const std::function<std::string()>& answer);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_ASK_CHILD_H_
