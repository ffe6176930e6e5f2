#include "launch/process/stall_watch.h"

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

constexpr int kNobody = -1;

}  // namespace

StallWatch::StallWatch(Board* board, Nanos timeout, Nanos period)
    : board_(board), timeout_(timeout), period_(period), seen_(board->ranks()) {}

bool StallWatch::Look() {
  bool begun = false;
  for (int rank = 0; rank < board_->ranks(); ++rank) {
    Seen& seen = seen_[rank];
    const int64_t actions = board_->actions(rank);
    const int64_t waits = board_->waits(rank);
    begun = begun || actions != seen.actions;
    const bool changed = actions != seen.actions || waits != seen.waits;
    seen = {actions, waits, changed ? Nanos(0) : seen.quiet + period_};
  }
  return begun;
}

int StallWatch::Culprit() const {
  int culprit = kNobody;
  for (int rank = 0; rank < board_->ranks(); ++rank) {
    if (board_->state(rank) != Board::State::kRunning) continue;
    if (culprit == kNobody || seen_[rank].quiet > seen_[culprit].quiet) culprit = rank;
  }
  return culprit;
}

void StallWatch::Tick() {
  if (timeout_ == Nanos(0)) return;
  still_ = Look() ? Nanos(0) : still_ + period_;
  if (still_ <= timeout_) return;
  const int culprit = Culprit();
  if (culprit == kNobody) return;
  // The others wait up to its last sign, and a little longer.
  const bool waits = seen_[culprit].quiet < Nanos(timeout_.value / 2);
  board_->DeclareLost(
      culprit, absl::StrCat("no worker has begun anything for ", FormatNanos(timeout_),
                            waits ? ", and all wait for each other" : ", and all wait for it"));
}

}  // namespace siphon
