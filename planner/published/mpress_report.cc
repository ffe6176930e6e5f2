#include "planner/published/mpress_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/published/mpress_figure9.h"
#include "planner/published/mpress_figures.h"
#include "planner/published/mpress_table3.h"
#include "planner/published/mpress_table4.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<std::string> MpressReport(const MpressServers& servers, const MpressTools& tools,
                                         const std::vector<MemoryStrategy>& strategies) {
  std::string text = MpressTable3Text();
  std::vector<MpressRun> for_table4;
  for (const MpressFigure& figure : MpressFigures()) {
    const Topology& topology = figure.name == "7"    ? servers.bert
                               : figure.name == "8a" ? servers.gpt
                                                     : servers.a100;
    SIPHON_ASSIGN_OR_RETURN(const std::vector<MpressRun> runs,
                            RunFigure(figure, topology, tools, strategies));
    absl::StrAppend(&text, "\n", MpressFigureText(figure, runs));
    if (figure.name == "8b") continue;  // Table IV is about the other two
    for (const MpressRun& run : runs) {
      if (run.strategy == "mpress" || run.strategy == "auto") for_table4.push_back(run);
    }
  }
  absl::StrAppend(&text, "\n", MpressTable4Text(for_table4));
  for (const Topology* topology : {&servers.gpt, &servers.a100}) {
    SIPHON_ASSIGN_OR_RETURN(const MpressFigure9 figure, RunMpressFigure9(*topology, tools));
    absl::StrAppend(&text, "\n", MpressFigure9Text(figure, topology->copy_engines));
  }
  return text;
}

}  // namespace siphon
