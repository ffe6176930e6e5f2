#ifndef SIPHON_LAUNCH_RUN_SEAT_LINK_WATCH_H_
#define SIPHON_LAUNCH_RUN_SEAT_LINK_WATCH_H_

#include <map>
#include <optional>
#include <vector>

#include "planner/units.h"
#include "swap/device/link_queues.h"
#include "swap/parking_layout.h"

namespace siphon {

// A link of a worker, as the plan has it and as it was in a step.
struct LinkState {
  ParkingPlace place;
  CopyLinkRate planned;  // rate 0: nothing is known of it
  CopyLinkUse use;
};

// A link that is far slower than planned.
struct SlowLink {
  ParkingPlace place;
  double factor = 1;  // times the planned time
};

// Finds links that were, in each of kSteps steps one after the other, kFactor times slower than
// planned, where that took more than kLeastPart of the step: what a busy machine makes of a short
// copy is no reason to leave a link. Each place is named once.
class LinkWatch {
 public:
  static constexpr double kFactor = 5;
  static constexpr int kSteps = 3;
  static constexpr double kLeastPart = 0.2;

  // After each step. The slowest, where there are several.
  std::optional<SlowLink> Note(const std::vector<LinkState>& links, Nanos step);

 private:
  struct Slowness {
    int steps = 0;  // one after the other, up to the last one
    Nanos planned;  // of these
    Nanos taken;
    bool named = false;
  };
  std::map<ParkingPlace, Slowness> slow_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SEAT_LINK_WATCH_H_
