#include "launch/process/heartbeat.h"

#include <unistd.h>

#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/process/loss_watch.h"
#include "launch/process/stall_watch.h"
#include "launch/process/stop_signal.h"

namespace siphon {

struct Heartbeat::Impl {
  Impl(Board* the_board, int the_rank, Options the_options,
       std::function<void(const Board::Failure&)> callback)
      : board(the_board),
        rank(the_rank),
        options(the_options),
        on_failure(std::move(callback)),
        watch(board, rank, options.timeout, options.period),
        stalls(board, options.stall_timeout, options.period) {}

  void Run() {
    bool reported = false;
    do {
      board->Beat(rank);
      if (reported) continue;
      watch.Tick();
      stalls.Tick();
      if (const std::optional<Board::Failure> failure = board->first_failure();
          failure.has_value()) {
        reported = true;
        enforcer = std::thread([this, code = failure->exit_code] {
          if (!stop.StoppedWithin(options.grace)) _exit(code);
        });
        if (on_failure) on_failure(*failure);
      }
    } while (!stop.StoppedWithin(options.period));
  }

  Board* const board;
  const int rank;
  const Options options;
  const std::function<void(const Board::Failure&)> on_failure;
  LossWatch watch;  // the thread's own, as is this:
  StallWatch stalls;

  StopSignal stop;
  std::thread enforcer;  // started by `thread`, joined after it
  std::thread thread;
};

Heartbeat::Heartbeat(Board* board, int rank, Options options,
                     std::function<void(const Board::Failure&)> on_failure)
    : impl_(std::make_unique<Impl>(board, rank, options, std::move(on_failure))) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->Run(); });
}

Heartbeat::~Heartbeat() {
  impl_->stop.Stop();
  impl_->thread.join();
  if (impl_->enforcer.joinable()) impl_->enforcer.join();
}

absl::Status Heartbeat::Check() const {
  impl_->board->Wait(impl_->rank);
  const std::optional<Board::Failure> failure = impl_->board->first_failure();
  if (!failure.has_value()) return absl::OkStatus();
  const bool lost = failure->kind == Board::FailureKind::kLost;
  return absl::Status(failure->code,
                      absl::StrCat("worker ", failure->rank, lost ? " was lost" : " failed",
                                   failure->action.empty() ? "" : " during ", failure->action, ": ",
                                   failure->message));
}

}  // namespace siphon
