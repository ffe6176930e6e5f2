#ifndef SIPHON_PLANNER_PUBLISHED_MPRESS_REPORT_H_
#define SIPHON_PLANNER_PUBLISHED_MPRESS_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/published/mpress_figure9.h"
#include "planner/published/mpress_figures.h"
#include "planner/published/mpress_instance.h"
#include "planner/published/mpress_run.h"
#include "planner/published/mpress_section5.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {

// The servers of section IV.A, as topologies.
struct MpressServers {
  Topology bert;   // p3dn.24xlarge
  Topology gpt;    // a like DGX-1 with more host memory and NVMe
  Topology a100;   // what the paper calls DGX-2
  Topology grace;  // Grace-Hopper (section V)
};

// A part of the paper's evaluation.
enum class MpressSection { kTable3, kTable4, kFigure7, kFigure8, kFigure9, kSection5 };
struct MpressSectionName {
  MpressSection section;
  absl::string_view name;
};
// "table3", ..., in the order in which they are printed.
const std::vector<MpressSectionName>& MpressSectionNames();

// A figure of the paper and our runs of its models.
struct MpressFigureRuns {
  MpressFigure figure;
  std::vector<MpressRun> runs;
};

// Ours, of the sections that were asked for.
struct MpressReport {
  std::vector<MpressSection> sections;
  std::vector<MpressFigureRuns> figures;
  std::vector<MpressRun> table4;  // mpress and auto on its four models
  std::vector<MpressFigure9> figure9;
  std::optional<MpressProjection> section5;
};

struct MpressRequest {
  MpressServers servers;
  MpressTools tools;
  // The columns of Figures 7 and 8, and the rows of section V; those of them called mpress and auto
  // are the plans of Table IV.
  std::vector<MemoryStrategy> strategies;
  std::vector<MemoryBaseline> baselines;  // further columns of Figure 8
  std::vector<MpressSection> sections;
};

// Plans the models of the sections, telling `say` before each what is being planned. Table IV takes
// the runs of Figures 7 and 8 where these are asked for, too.
// Errors: as RunFigure and RunMpressFigure9.
absl::StatusOr<MpressReport> RunMpressReport(const MpressRequest& request, MpressProgress say);

// Ours beside the paper's, with what is assumed, and why what deviates does.
std::string MpressReportText(const MpressReport& report);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PUBLISHED_MPRESS_REPORT_H_
