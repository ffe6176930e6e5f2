#include "launch/output/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/output/figure_text.h"

namespace siphon {
namespace {

constexpr absl::string_view kRedraw = "\r\x1b[K";  // to the start of the line, and clear it
constexpr double kSmoothing = 0.1;                 // weight of the newest step's rate
constexpr int kBarCells = 24;

}  // namespace

std::string FormatDuration(Nanos time) {
  const int64_t seconds = (time.value + 500'000'000) / 1'000'000'000;
  if (seconds < 60) return absl::StrCat(seconds, " s");
  if (seconds < 3600) return absl::StrFormat("%d min %02d s", seconds / 60, seconds % 60);
  return absl::StrFormat("%d h %02d min", seconds / 3600, seconds % 3600 / 60);
}

ProgressPrinter::ProgressPrinter(Options options, Nanos begin,
                                 std::function<void(absl::string_view)> sink)
    : options_(options), begin_(begin), sink_(std::move(sink)) {}

std::string ProgressPrinter::TimeLeft(const StepMetrics& step, Nanos now) const {
  const int64_t done = std::max<int64_t>(step.step - options_.first_step, 1);
  const int64_t left = std::max<int64_t>(options_.total_steps - step.step, 0);
  const double each = static_cast<double>((now - begin_).value) / static_cast<double>(done);
  return FormatDuration(Nanos(static_cast<int64_t>(each * static_cast<double>(left))));
}

std::string ProgressPrinter::Line(const StepMetrics& step, Nanos now) const {
  return absl::StrFormat("step %d/%d  loss %.4f  %s tokens/s  %s left", step.step,
                         options_.total_steps, step.loss, FigureText(tokens_per_second_),
                         TimeLeft(step, now));
}

std::string ProgressPrinter::Bar(const StepMetrics& step, Nanos now) const {
  const int64_t total = std::max<int64_t>(options_.total_steps, 1);
  const int cells = static_cast<int>(std::min(step.step, total) * kBarCells / total);
  const std::string bar = absl::StrCat("[", std::string(cells, '='),
                                       std::string(kBarCells - cells, ' '), "] ", Line(step, now));
  // In the last column some terminals go to the next line.
  return bar.substr(0, static_cast<size_t>(std::max(options_.columns - 1, 0)));
}

void ProgressPrinter::Step(const StepMetrics& step, Nanos now) {
  const bool first = !shown_at_.has_value();
  const double rate = TokensPerSecond(step);
  tokens_per_second_ = first ? rate : tokens_per_second_ + kSmoothing * (rate - tokens_per_second_);
  const bool terminal = options_.columns > 0;
  const Nanos period = terminal ? options_.bar_period : options_.line_period;
  const bool last = step.step >= options_.total_steps;
  if (first || last || now - *shown_at_ >= period || step.validation_loss.has_value()) {
    shown_at_ = now;
    if (terminal) {
      bar_ = Bar(step, now);
      sink_(absl::StrCat(kRedraw, bar_));
    } else {
      sink_(absl::StrCat(Line(step, now), "\n"));
    }
  }
  if (step.validation_loss.has_value()) {
    Say(absl::StrFormat("step %d: validation loss %.4f", step.step, *step.validation_loss));
  }
}

void ProgressPrinter::Say(absl::string_view line) {
  sink_(bar_.empty() ? absl::StrCat(line, "\n") : absl::StrCat(kRedraw, line, "\n", bar_));
}

void ProgressPrinter::Finish() {
  if (!bar_.empty()) sink_(kRedraw);
  bar_.clear();
}

}  // namespace siphon
