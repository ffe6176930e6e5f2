#include "launch/commands/planning_progress.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// Between two lines where no line replaces another.
constexpr int kSecondsBetween = 5;

}  // namespace

std::string ProgressLine(absl::string_view doing, absl::string_view detail, Nanos step,
                         int seconds) {
  std::string line(doing);
  if (!detail.empty()) absl::StrAppend(&line, ": ", detail);
  if (step > Nanos(0)) absl::StrAppend(&line, ", ", FormatNanos(step), " a step so far");
  line += " ...";
  if (seconds > 0) absl::StrAppend(&line, " ", seconds, " s");
  return line;
}

PlanningProgress::PlanningProgress(std::chrono::milliseconds second)
    : terminal_(isatty(STDERR_FILENO) != 0), second_(second), ticker_([this] { Tick(); }) {}

PlanningProgress::~PlanningProgress() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  ticker_.join();
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void PlanningProgress::Say(absl::string_view doing) {
  const std::lock_guard<std::mutex> lock(mutex_);
  doing_ = std::string(doing);
  detail_.clear();
  step_ = Nanos(0);
  if (terminal_) Print();
}

PlanningNews PlanningProgress::News() {
  return [this](absl::string_view doing, Nanos step) {
    const std::lock_guard<std::mutex> lock(mutex_);
    detail_ = std::string(doing);
    step_ = step;
    if (terminal_) Print();
  };
}

void PlanningProgress::Tick() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, second_, [this] { return ends_; })) {
    ++seconds_;
    const bool is_due = terminal_ || seconds_ % kSecondsBetween == 0;
    if (is_due && !doing_.empty()) Print();
  }
}

void PlanningProgress::Print() const {
  const std::string line = ProgressLine(doing_, detail_, step_, seconds_);
  std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(stderr);
}

}  // namespace siphon
