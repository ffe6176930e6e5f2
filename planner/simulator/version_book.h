#ifndef SIPHON_PLANNER_SIMULATOR_VERSION_BOOK_H_
#define SIPHON_PLANNER_SIMULATOR_VERSION_BOOK_H_

#include <cstddef>
#include <vector>

#include "planner/ids.h"

namespace siphon {

// Which weight version of one stage each microbatch came through, and has to come back to.
class VersionBook {
 public:
  // The microbatch goes forward through the newest version.
  void Use(MicrobatchId microbatch) {
    const auto slot = static_cast<size_t>(microbatch.value);
    if (version_of_.size() <= slot) version_of_.resize(slot + 1, kNone);
    version_of_[slot] = newest();
    ++uses_.back();
  }

  // It has come back. True if that was the last use of an older version, which can go.
  bool Release(MicrobatchId microbatch) {
    const auto slot = static_cast<size_t>(microbatch.value);
    if (slot >= version_of_.size() || version_of_[slot] == kNone) return false;
    const int version = version_of_[slot];
    version_of_[slot] = kNone;
    return --uses_[version] == 0 && version != newest();
  }

  // Makes a new version. True if the one before it has to stay.
  bool Update() {
    uses_.push_back(0);
    return uses_[uses_.size() - 2] > 0;
  }

 private:
  static constexpr int kNone = -1;
  int newest() const { return static_cast<int>(uses_.size()) - 1; }

  std::vector<int> version_of_;  // [microbatch]
  std::vector<int> uses_ = {0};  // [version]: microbatches that have to come back to it
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_VERSION_BOOK_H_
