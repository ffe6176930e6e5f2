#ifndef SIPHON_PLANNER_PUBLISHED_MPRESS_TABLE4_H_
#define SIPHON_PLANNER_PUBLISHED_MPRESS_TABLE4_H_

#include <string>
#include <vector>

#include "planner/published/mpress_run.h"

namespace siphon {

// What one way of saving spares: GB (1e9 bytes), and on which stages.
struct MpressShare {
  double gigabytes = 0;
  int first_stage = 0;  // nothing is saved: last < first
  int last_stage = -1;
};

// A row of MPress's Table IV.
struct MpressSavings {
  std::string model;
  MpressShare recomputed;
  MpressShare host;
  MpressShare peers;
};
const std::vector<MpressSavings>& MpressTable4();

// What eight devices of 32 GB lack of the model's total demand in Table II.
Bytes PublishedOverflow(const MpressSavings& row);

// The paper's row, and below it those of the runs of that model which fit. Other shares than the
// paper's are no error: MPress saves more than it must, so that what each saves in all stands
// beside what must be saved.
std::string MpressTable4Text(const std::vector<MpressRun>& runs);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PUBLISHED_MPRESS_TABLE4_H_
