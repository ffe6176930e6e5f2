#include "planner/published/mpress_report.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/published/mpress_table3.h"
#include "planner/published/mpress_table4.h"
#include "planner/status.h"

namespace siphon {
namespace {

bool Asks(const std::vector<MpressSection>& sections, MpressSection section) {
  return std::find(sections.begin(), sections.end(), section) != sections.end();
}

MpressSection SectionOf(const MpressFigure& figure) {
  return figure.name == "7" ? MpressSection::kFigure7 : MpressSection::kFigure8;
}

const Topology& ServerOf(const MpressFigure& figure, const MpressServers& servers) {
  if (figure.name == "7") return servers.bert;
  return figure.name == "8a" ? servers.gpt : servers.a100;
}

bool IsPlanOfTable4(absl::string_view strategy) {
  return strategy == "mpress" || strategy == "auto";
}

bool IsModelOfTable4(absl::string_view model) {
  const std::vector<MpressSavings>& rows = MpressTable4();
  return std::any_of(rows.begin(), rows.end(),
                     [&](const MpressSavings& row) { return row.model == model; });
}

std::vector<MpressRun> RunsForTable4(const std::vector<MpressRun>& runs) {
  std::vector<MpressRun> chosen;
  for (const MpressRun& run : runs) {
    if (IsPlanOfTable4(run.strategy) && IsModelOfTable4(run.model)) chosen.push_back(run);
  }
  return chosen;
}

// `figure` with no models and strategies but those of Table IV.
absl::StatusOr<std::vector<MpressRun>> RunTable4(MpressFigure figure, const MpressRequest& request,
                                                 MpressProgress say) {
  std::erase_if(figure.models, [](const std::string& model) { return !IsModelOfTable4(model); });
  std::vector<MemoryStrategy> strategies = request.strategies;
  std::erase_if(strategies,
                [](const MemoryStrategy& strategy) { return !IsPlanOfTable4(strategy.name); });
  return RunFigure(figure, ServerOf(figure, request.servers), request.tools, strategies, say);
}

constexpr char kAssumptions[] =
    "Assumed, for all rows alike, as the paper does not say it: shapes of the models (GPT: hidden "
    "4096, sequence 1024;\nBert: hidden 1024, sequence 512; the larger Berts the shape closest to "
    "Table II), 32 microbatches a step, 1 GB of each\ndevice for its driver, stages balanced by "
    "operations, times from the devices' data sheets and the share of them that\nwhole "
    "transformers reach, Adam of a billion parameters on the host 0.22 s.\nStages "
    "are placed by the paper's score (the longest D2D swap), for all strategies. Steps are "
    "simulated: "
    "copies run beside the\ncomputation at the links' measured rates.\n";

constexpr char kFigure7Notes[] =
    "Where ours differs: the paper states no shape of the larger Berts; with the one closest to "
    "Table II recomputation fits Bert-4.0B, too\n(published: fails). Host swap alone does not fit "
    "Bert-6.2B (published: runs): all that must leave is more than the server's 768 GB, by\nthe "
    "paper's own Table IV as well (972 + 59 + 42 = 1,073 GB). Ratios are nearer to one than the "
    "paper's: copies run beside the\ncomputation here and cost no time of their own, so that host "
    "swap, which the paper has 1.8 to 3.1 times slower than MPress, hides.\n";

constexpr char kBaselineNotes[] =
    "Baselines (zero_*, lms, unified_memory) are one device's lanes, without latencies or "
    "launches: "
    "flattering. A step has as many samples as\nthe pipelines' (64), or with /1 one microbatch a "
    "device (16): the paper does not say how often its ZeRO systems step, and the host's\nAdam is "
    "paid once a step. On the A100 server its ratios to MPress lie between the two readings; on "
    "DGX-1 MPress leads by more than in\neither. That ZeRO-Infinity is 21 to 24 % faster than "
    "ZeRO-Offload there does not follow: both copy the same gradients, hidden by the\nbackward. "
    "Drives with all optimizer state on them (zero_infinity_nvme) make it far slower than "
    "published, "
    "so that state was mostly in\nhost memory. Our recompute and mpress recompute no more than "
    "they "
    "must, and copies cost no computation: ratios are nearer to one.\n";

constexpr char kFigure9Notes[] =
    "Why mapping and striping gain nothing here: a block's activations (0.62 GB) cross one NVLink "
    "of DGX-1 in 26 ms, beside the\n"
    "computation, while a stage works 0.5 to 0.9 s on a microbatch: one link hides them, and more "
    "links cannot hide more. What is left of\n"
    "the differences is where the paper's greedy search stops, which replaces the worst way by D2D "
    "swap while the simulated step gets\n"
    "shorter (GB by way above). Of GPT-15.4B every stage is too full for a V100 (37 GB at least), "
    "so that lenders have room only once\n"
    "their own tensors are gone: on the maps of the search it parks next to nothing, on workers in "
    "order some, and that is faster. On the\n"
    "A100 server it stops sooner with stripes. On GPT-10.3B, which has lenders on either server, "
    "all are within a hundredth. The measured\n"
    "gains need copies that delay the computation, which first principles do not tell.\n";

}  // namespace

const std::vector<MpressSectionName>& MpressSectionNames() {
  static const auto* const names = new std::vector<MpressSectionName>{
      {MpressSection::kTable3, "table3"},   {MpressSection::kFigure7, "figure7"},
      {MpressSection::kFigure8, "figure8"}, {MpressSection::kTable4, "table4"},
      {MpressSection::kFigure9, "figure9"}, {MpressSection::kSection5, "section5"}};
  return *names;
}

absl::StatusOr<MpressReport> RunMpressReport(const MpressRequest& request, MpressProgress say) {
  MpressReport report{.sections = request.sections};
  for (const MpressFigure& figure : MpressFigures()) {
    std::vector<MpressRun> for_table4;
    if (Asks(request.sections, SectionOf(figure))) {
      SIPHON_ASSIGN_OR_RETURN(std::vector<MpressRun> runs,
                              RunFigure(figure, ServerOf(figure, request.servers), request.tools,
                                        request.strategies, say));
      for_table4 = RunsForTable4(runs);
      // Section IV.B has pipelines only.
      if (figure.name != "7") {
        SIPHON_ASSIGN_OR_RETURN(std::vector<MpressRun> baselines,
                                RunBaselines(figure, ServerOf(figure, request.servers),
                                             request.tools, request.baselines, say));
        std::move(baselines.begin(), baselines.end(), std::back_inserter(runs));
      }
      report.figures.push_back({figure, std::move(runs)});
    } else if (Asks(request.sections, MpressSection::kTable4) && figure.name != "8b") {
      SIPHON_ASSIGN_OR_RETURN(for_table4, RunTable4(figure, request, say));
    }
    // Table IV is about the servers with V100.
    if (figure.name == "8b") continue;
    report.table4.insert(report.table4.end(), for_table4.begin(), for_table4.end());
  }
  if (Asks(request.sections, MpressSection::kSection5)) {
    SIPHON_ASSIGN_OR_RETURN(
        report.section5,
        RunMpressProjection(request.servers.grace, request.tools, request.strategies, say));
  }
  if (!Asks(request.sections, MpressSection::kFigure9)) return report;
  for (const Topology* server : {&request.servers.gpt, &request.servers.a100}) {
    for (const char* model : {kFigure9Model, kFigure9SmallerModel}) {
      say(absl::StrCat("Figure 9: ", model, " on ", server->name));
      SIPHON_ASSIGN_OR_RETURN(MpressFigure9 figure,
                              RunMpressFigure9(model, *server, request.tools));
      report.figure9.push_back(std::move(figure));
    }
  }
  return report;
}

std::string MpressReportText(const MpressReport& report) {
  std::string text = kAssumptions;
  const bool shows_table4 = Asks(report.sections, MpressSection::kTable4);
  if (Asks(report.sections, MpressSection::kTable3)) {
    absl::StrAppend(&text, "\n", MpressTable3Text());
  }
  for (const auto& [figure, runs] : report.figures) {
    absl::StrAppend(&text, "\n", MpressFigureText(figure, runs));
    if (SectionOf(figure) == MpressSection::kFigure7) absl::StrAppend(&text, kFigure7Notes);
  }
  if (Asks(report.sections, MpressSection::kFigure8)) absl::StrAppend(&text, kBaselineNotes);
  if (shows_table4) absl::StrAppend(&text, "\n", MpressTable4Text(report.table4));
  for (const MpressFigure9& figure : report.figure9) {
    absl::StrAppend(&text, "\n", MpressFigure9Text(figure));
  }
  if (Asks(report.sections, MpressSection::kFigure9)) absl::StrAppend(&text, kFigure9Notes);
  if (report.section5) absl::StrAppend(&text, "\n", MpressProjectionText(*report.section5));
  return text;
}

}  // namespace siphon
