#include "launch/process/loss_watch.h"

#include "absl/strings/str_cat.h"

namespace siphon {

LossWatch::LossWatch(Board* board, int self, Nanos timeout, Nanos period)
    : board_(board), self_(self), timeout_(timeout), period_(period), seen_(board->ranks()) {}

void LossWatch::Tick() {
  for (int rank = 0; rank < board_->ranks(); ++rank) {
    if (rank == self_) continue;
    Seen& seen = seen_[rank];
    const ProcessId process = board_->process(rank);
    const int64_t beats = board_->beats(rank);
    if (process.pid == 0 || beats != seen.beats) {
      seen = {beats, Nanos(0)};
      continue;
    }
    // The process before the state: a rank says that it has finished, then ends.
    const bool running = board_->elsewhere(rank) || IsRunning(process);
    if (board_->state(rank) != Board::State::kRunning) continue;
    if (!running) {
      board_->DeclareLost(rank, "its process is gone");
      continue;
    }
    seen.silent += period_;
    if (seen.silent > timeout_) {
      board_->DeclareLost(rank, absl::StrCat("no heartbeat for ", FormatNanos(timeout_)));
    }
  }
}

}  // namespace siphon
