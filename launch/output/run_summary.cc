#include "launch/output/run_summary.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/output/figure_text.h"
#include "launch/output/progress.h"

namespace siphon {
namespace {

std::string FirstLine(const RunSummary& summary) {
  const bool stopped = summary.steps_done < summary.total_steps;
  if (summary.first_step > summary.total_steps) {
    return absl::StrFormat("nothing to do: the checkpoint is at step %d, beyond train.steps %d",
                           summary.first_step, summary.total_steps);
  }
  if (!stopped && summary.steps_done == summary.first_step) {
    return absl::StrFormat("nothing to do: all %d steps are done", summary.total_steps);
  }
  std::string text =
      absl::StrFormat("%s after step %d of %d, in %s", stopped ? "stopped" : "done",
                      summary.steps_done, summary.total_steps, FormatDuration(summary.duration));
  if (summary.training.value > 0) {
    const double rate =
        static_cast<double>(summary.tokens) * 1e9 / static_cast<double>(summary.training.value);
    absl::StrAppend(&text, " (", FigureText(rate), " tokens/s)");
  }
  if (summary.steps_done > summary.first_step) {
    absl::StrAppendFormat(&text, ": loss %.4f", summary.last_loss);
    if (summary.last_validation_loss.has_value()) {
      absl::StrAppendFormat(&text, ", validation loss %.4f", *summary.last_validation_loss);
    }
  }
  return text;
}

std::string CheckpointText(const RunSummary& summary) {
  if (summary.steps_done == summary.first_step) return summary.checkpoint;
  if (summary.checkpoint.empty()) {
    return "none: what was trained is not kept (checkpoint.every_steps writes one at the end, too)";
  }
  if (summary.checkpoint_step == summary.steps_done) return summary.checkpoint;
  return absl::StrCat(summary.checkpoint, ", which has ", summary.checkpoint_step, " of ",
                      summary.steps_done, " steps; the later ones are in none");
}

}  // namespace

std::string ToString(const RunSummary& summary) {
  std::string text = FirstLine(summary) + "\n";
  const auto add = [&](absl::string_view name, const std::string& value) {
    if (!value.empty()) absl::StrAppendFormat(&text, "  %-11s %s\n", name, value);
  };
  for (const std::string& warning : summary.warnings) add("warning", warning);
  add("parked", summary.parked);
  add("recomputed", summary.recomputed);
  add("checkpoint", CheckpointText(summary));
  add("metrics", summary.metrics);
  add("trace",
      summary.trace.empty() ? "" : summary.trace + " (open it at https://ui.perfetto.dev)");
  if (!summary.next_commands.empty()) text += "next:\n";
  for (const std::string& command : summary.next_commands)
    absl::StrAppend(&text, "  ", command, "\n");
  return text;
}

}  // namespace siphon
