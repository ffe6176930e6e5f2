#include "planner/published/mpress_figures.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Models up to (and without) `fails_from` run, the others fail; none beyond `figure.models`.
void AddBars(MpressFigure& figure, const char* strategy, size_t fails_from) {
  for (size_t model = 0; model < figure.models.size(); ++model) {
    figure.bars.push_back(
        {figure.models[model], strategy, model < fails_from ? Outcome::kRuns : Outcome::kFails});
  }
}

// `ratio` for each of the figure's models.
void AddRatios(MpressFigure& figure, MpressRatio ratio) {
  for (const std::string& model : figure.models) {
    ratio.model = model;
    figure.ratios.push_back(ratio);
  }
}

MpressFigure Figure7() {
  MpressFigure figure{
      .name = "7",
      .machine = "p3dn.24xlarge, 8 V100 of 32 GB; Bert on PipeDream, microbatch 12",
      .models = {"Bert-0.35B", "Bert-0.64B", "Bert-1.67B", "Bert-4.0B", "Bert-6.2B"},
      .ratios = {{"Bert-0.35B", "mpress", "keep", 1.0},
                 {"Bert-0.64B", "recompute", "host_swap", 2.434},
                 {"Bert-0.64B", "d2d_swap", "mpress", 1.0},
                 {"Bert-1.67B", "recompute", "host_swap", 2.254},
                 {"Bert-1.67B", "recompute", "mpress", 0.805},
                 {"Bert-4.0B", "mpress", "host_swap", 1.8},
                 {"Bert-6.2B", "mpress", "host_swap", 3.1}}};
  AddBars(figure, "keep", 1);
  AddBars(figure, "host_swap", 5);
  AddBars(figure, "recompute", 3);
  AddBars(figure, "d2d_swap", 2);
  AddBars(figure, "mpress", 5);
  return figure;
}

MpressFigure Figure8a() {
  MpressFigure figure{.name = "8a",
                      .machine = "DGX-1, 8 V100 of 32 GB; GPT on DAPPLE, microbatch 2",
                      .models = {"GPT-5.3B", "GPT-10.3B", "GPT-15.4B", "GPT-20.4B"},
                      .ratios = {{"GPT-10.3B", "recompute", "mpress", 0.808}}};
  AddBars(figure, "keep", 1);
  AddBars(figure, "recompute", 2);
  AddBars(figure, "zero_offload", 4);
  AddBars(figure, "zero_infinity", 4);
  AddRatios(figure,
            {.strategy = "zero_infinity", .over = "zero_offload", .ratio = 1.206, .most = 1.238});
  AddRatios(figure, {.strategy = "mpress", .over = "zero_infinity", .ratio = 1.37, .most = 1.408});
  AddBars(figure, "mpress", 4);
  return figure;
}

MpressFigure Figure8b() {
  MpressFigure figure{.name = "8b",
                      .machine = "8 A100 of 40 GB; GPT on DAPPLE, microbatch 2",
                      .models = {"GPT-5.3B", "GPT-10.3B", "GPT-15.4B", "GPT-20.4B", "GPT-25.5B"}};
  AddBars(figure, "recompute", 3);
  AddBars(figure, "mpress", 5);
  AddBars(figure, "zero_offload", 5);
  AddBars(figure, "zero_infinity", 5);
  AddRatios(figure, {.strategy = "zero_offload", .over = "mpress", .ratio = 0.552, .most = 0.696});
  AddRatios(figure, {.strategy = "zero_infinity", .over = "mpress", .ratio = 0.3, .most = 0.768});
  // Section IV.C gives no limit for DAPPLE alone here, but what fits into 32 GB fits into 40.
  figure.bars.push_back({"GPT-5.3B", "keep", Outcome::kRuns});
  return figure;
}

const MpressRun* FindRun(const std::vector<MpressRun>& runs, absl::string_view model,
                         absl::string_view strategy) {
  const auto found = std::find_if(runs.begin(), runs.end(), [&](const MpressRun& run) {
    return run.model == model && run.strategy == strategy;
  });
  return found == runs.end() ? nullptr : &*found;
}

// The ratio of baselines that step after one microbatch.
MpressRatio WithOneMicrobatch(const std::vector<MpressRun>& runs, MpressRatio ratio) {
  for (std::string* name : {&ratio.strategy, &ratio.over}) {
    std::string one = absl::StrCat(*name, "/1");
    if (FindRun(runs, ratio.model, one) != nullptr) *name = std::move(one);
  }
  return ratio;
}

absl::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kRuns:
      return "runs";
    case Outcome::kFails:
      return "fails";
    case Outcome::kNotShown:
      break;
  }
  return "-";
}

}  // namespace

const std::vector<MpressFigure>& MpressFigures() {
  static const auto* const figures =
      new std::vector<MpressFigure>{Figure7(), Figure8a(), Figure8b()};
  return *figures;
}

absl::StatusOr<std::vector<MpressRun>> RunFigure(const MpressFigure& figure,
                                                 const Topology& topology, const MpressTools& tools,
                                                 const std::vector<MemoryStrategy>& strategies,
                                                 MpressProgress say) {
  std::vector<MpressRun> runs;
  for (const std::string& model : figure.models) {
    SIPHON_ASSIGN_OR_RETURN(const MpressRow row, FindMpressRow(model));
    SIPHON_ASSIGN_OR_RETURN(const MpressInstance instance,
                            MakeMpressInstance(row, topology, tools));
    for (const MemoryStrategy& strategy : strategies) {
      say(absl::StrCat("Figure ", figure.name, ": ", model, " under ", strategy.name));
      absl::StatusOr<MpressRun> run = RunInstance(instance, strategy);
      if (!run.ok()) return Annotate(run.status(), absl::StrCat(model, ", ", strategy.name));
      runs.push_back(*std::move(run));
    }
  }
  return runs;
}

absl::StatusOr<std::vector<MpressRun>> RunBaselines(const MpressFigure& figure,
                                                    const Topology& topology,
                                                    const MpressTools& tools,
                                                    const std::vector<MemoryBaseline>& baselines,
                                                    MpressProgress say) {
  std::vector<MpressRun> runs;
  for (const std::string& model : figure.models) {
    SIPHON_ASSIGN_OR_RETURN(const MpressRow row, FindMpressRow(model));
    SIPHON_ASSIGN_OR_RETURN(const MpressInstance instance,
                            MakeMpressInstance(row, topology, tools));
    for (const MemoryBaseline& baseline : baselines) {
      say(absl::StrCat("Figure ", figure.name, ": ", model, " under ", baseline.name));
      for (const BaselineStepSize size :
           {BaselineStepSize::kAsPipelines, BaselineStepSize::kOneMicrobatch}) {
        absl::StatusOr<MpressRun> run = RunBaseline(instance, baseline, size);
        if (!run.ok()) return Annotate(run.status(), absl::StrCat(model, ", ", baseline.name));
        runs.push_back(*std::move(run));
      }
    }
  }
  return runs;
}

Outcome PublishedOutcome(const MpressFigure& figure, absl::string_view model,
                         absl::string_view strategy) {
  for (const MpressBar& bar : figure.bars) {
    if (bar.model == model && bar.strategy == strategy) return bar.outcome;
  }
  return Outcome::kNotShown;
}

std::optional<double> RatioOf(const std::vector<MpressRun>& runs, const MpressRatio& published) {
  const MpressRun* run = FindRun(runs, published.model, published.strategy);
  const MpressRun* over = FindRun(runs, published.model, published.over);
  if (run == nullptr || over == nullptr || !run->status.ok() || !over->status.ok()) {
    return std::nullopt;
  }
  return run->samples_per_second / over->samples_per_second;
}

std::string MpressFigureText(const MpressFigure& figure, const std::vector<MpressRun>& runs) {
  std::string text =
      absl::StrCat("MPress, Figure ", figure.name, ": ", figure.machine,
                   "\nmodel       strategy                published  ours    TFLOPS\n");
  for (const MpressRun& run : runs) {
    absl::StrAppendFormat(&text, "%-11s %-23s %-10s %-6s", run.model, run.strategy,
                          OutcomeName(PublishedOutcome(figure, run.model, run.strategy)),
                          run.status.ok() ? "runs" : "fails");
    if (run.status.ok()) {
      absl::StrAppendFormat(&text, " %7.1f\n", run.tflops);
    } else {
      absl::StrAppend(&text, "  ", ReasonOf(run), "\n");
    }
  }
  for (const MpressRatio& ratio : figure.ratios) {
    const std::optional<double> ours = RatioOf(runs, ratio);
    absl::StrAppendFormat(&text, "%s: throughput of %s over %s: %s", ratio.model, ratio.strategy,
                          ratio.over, ours ? absl::StrFormat("%.2f", *ours) : "one does not run");
    const std::optional<double> other = RatioOf(runs, WithOneMicrobatch(runs, ratio));
    if (other && ours != other) absl::StrAppendFormat(&text, " (/1: %.2f)", *other);
    absl::StrAppendFormat(&text, ", published %.2f", ratio.ratio);
    if (ratio.most > 0) absl::StrAppendFormat(&text, " to %.2f", ratio.most);
    text += '\n';
  }
  return text;
}

}  // namespace siphon
