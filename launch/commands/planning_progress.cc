#include "launch/commands/planning_progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace siphon {

std::string ProgressLine(absl::string_view doing, absl::string_view detail, Nanos step,
                         int seconds) {
  std::string line(doing);
  if (!detail.empty()) absl::StrAppend(&line, ": ", detail);
  if (step > Nanos(0)) absl::StrAppend(&line, ", ", FormatNanos(step), " a step so far");
  line += " ...";
  if (seconds > 0) absl::StrAppend(&line, " ", seconds, " s");
  return line;
}

PlanningProgress::PlanningProgress() : terminal_(isatty(STDERR_FILENO) != 0) {
  if (terminal_) ticker_ = std::thread([this] { Tick(); });
}

PlanningProgress::~PlanningProgress() {
  if (!terminal_) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  ticker_.join();
  std::fputs("\r\033[K", stderr);
}

void PlanningProgress::Say(absl::string_view doing) {
  if (!terminal_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  doing_ = std::string(doing);
  detail_.clear();
  step_ = Nanos(0);
  Print();
}

PlanningNews PlanningProgress::News() {
  return [this](absl::string_view doing, Nanos step) {
    if (!terminal_) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    detail_ = std::string(doing);
    step_ = step;
    Print();
  };
}

void PlanningProgress::Tick() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return ends_; })) {
    ++seconds_;
    if (!doing_.empty()) Print();
  }
}

void PlanningProgress::Print() const {
  std::fprintf(stderr, "\r\033[K%s", ProgressLine(doing_, detail_, step_, seconds_).c_str());
  std::fflush(stderr);
}

}  // namespace siphon
