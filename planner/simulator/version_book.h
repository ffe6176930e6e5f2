#ifndef SIPHON_PLANNER_SIMULATOR_VERSION_BOOK_H_
#define SIPHON_PLANNER_SIMULATOR_VERSION_BOOK_H_

#include <vector>

#include "planner/ids.h"
#include "planner/schedule.h"

namespace siphon {

// Which weight versions one stage has to keep beside the newest, by the schedule's WeightRule.
class VersionBook {
 public:
  // The microbatch goes forward: with the version expected for it, else with the newest.
  void Use(MicrobatchId microbatch);
  // It has come back. True if that was the last use of an older version, which can go.
  bool Release(MicrobatchId microbatch);
  // Makes a new version. True if the one before it has to stay.
  bool Update();
  // Says beforehand which version the microbatch will use.
  void Expect(MicrobatchId microbatch, int version);

 private:
  static constexpr int kNone = -1;
  int& VersionOf(MicrobatchId microbatch);

  int newest_ = 0;
  std::vector<int> version_of_;  // [microbatch]
  std::vector<int> uses_ = {0};  // [version]: microbatches that have yet to come back to it
};

// [stage], before the first action of the worker's program. O(actions * log(updates)).
std::vector<VersionBook> OpenVersionBooks(const Schedule& schedule, WorkerId worker);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_VERSION_BOOK_H_
