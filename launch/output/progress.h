#ifndef SIPHON_LAUNCH_OUTPUT_PROGRESS_H_
#define SIPHON_LAUNCH_OUTPUT_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "launch/output/metrics.h"
#include "planner/units.h"

namespace siphon {

// "41 s", "3 min 20 s", "2 h 05 min".
std::string FormatDuration(Nanos time);

// Shows a run to people: on a terminal a bar that is drawn over and over, elsewhere one line every
// few seconds. Reads no clock and writes to `sink` only.
//
// Thread-safety: one thread.
class ProgressPrinter {
 public:
  struct Options {
    int64_t first_step = 0;  // steps done before this run
    int64_t total_steps = 0;
    int columns = 0;                           // of the terminal; 0: none
    Nanos line_period = Nanos(5'000'000'000);  // without a terminal
    Nanos bar_period = Nanos(100'000'000);     // with one
  };
  // `begin` is the time now, by the clock of all later calls.
  ProgressPrinter(Options options, Nanos begin, std::function<void(absl::string_view)> sink);

  // After each step. The first, the last, and those with a validation are always shown.
  void Step(const StepMetrics& step, Nanos now);
  // A line of its own, above the bar; `line` without newline.
  void Say(absl::string_view line);
  // Removes the bar.
  void Finish();

 private:
  std::string Line(const StepMetrics& step, Nanos now) const;
  std::string Bar(const StepMetrics& step, Nanos now) const;
  std::string TimeLeft(const StepMetrics& step, Nanos now) const;

  const Options options_;
  const Nanos begin_;
  const std::function<void(absl::string_view)> sink_;
  std::optional<Nanos> shown_at_;
  std::string bar_;               // on the terminal now; empty if none
  double tokens_per_second_ = 0;  // smoothed
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_PROGRESS_H_
