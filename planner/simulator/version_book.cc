#include "planner/simulator/version_book.h"

#include <algorithm>
#include <cstddef>

namespace siphon {

int& VersionBook::VersionOf(MicrobatchId microbatch) {
  const auto slot = static_cast<size_t>(microbatch.value);
  if (version_of_.size() <= slot) version_of_.resize(slot + 1, kNone);
  return version_of_[slot];
}

void VersionBook::Expect(MicrobatchId microbatch, int version) {
  VersionOf(microbatch) = version;
  if (uses_.size() <= static_cast<size_t>(version)) uses_.resize(version + 1, 0);
  ++uses_[version];
}

void VersionBook::Use(MicrobatchId microbatch) {
  if (VersionOf(microbatch) == kNone) Expect(microbatch, newest_);
}

bool VersionBook::Release(MicrobatchId microbatch) {
  int& version = VersionOf(microbatch);
  if (version == kNone) return false;
  const bool last = --uses_[version] == 0 && version < newest_;
  version = kNone;
  return last;
}

bool VersionBook::Update() {
  const bool stays = uses_[newest_++] > 0;
  if (uses_.size() <= static_cast<size_t>(newest_)) uses_.push_back(0);
  return stays;
}

std::vector<VersionBook> OpenVersionBooks(const Schedule& schedule, WorkerId worker) {
  std::vector<VersionBook> books(schedule.worker_of_stage.size());
  if (schedule.weight_rule != WeightRule::kOneGroupBehind) return books;
  std::vector<std::vector<MicrobatchId>> updates(books.size());
  const std::vector<Action>& program = schedule.programs[worker.value];
  for (const Action& action : program) {
    if (action.kind == ActionKind::kUpdate) {
      updates[action.stage.value].push_back(action.microbatch);
    }
  }
  for (std::vector<MicrobatchId>& of_stage : updates) std::sort(of_stage.begin(), of_stage.end());
  for (const Action& action : program) {
    if (action.kind != ActionKind::kForward) continue;
    const std::vector<MicrobatchId>& ends = updates[action.stage.value];
    const auto group = std::lower_bound(ends.begin(), ends.end(), action.microbatch) - ends.begin();
    books[action.stage.value].Expect(action.microbatch, std::max(static_cast<int>(group) - 1, 0));
  }
  return books;
}

}  // namespace siphon
