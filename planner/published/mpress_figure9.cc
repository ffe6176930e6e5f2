#include "planner/published/mpress_figure9.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/status.h"
#include "planner/strategies/mpress/mpress.h"

namespace siphon {
namespace {

constexpr double kNanosPerSecond = 1e9;
constexpr double kGigabyte = 1e9;

absl::StatusOr<MpressFigure9Bar> BarOf(const PlanningProblem& problem,
                                       const MpressOptions& options) {
  SIPHON_ASSIGN_OR_RETURN(const PlannedStep planned, PlanMpress(problem, options));
  return MpressFigure9Bar{.step_time = planned.simulated.step_time,
                          .recomputed = SavedBy(Placement::kRecompute, problem, planned),
                          .host = SavedBy(Placement::kHostSwap, problem, planned),
                          .peers = SavedBy(Placement::kPeerSwap, problem, planned)};
}

void AddBarLine(std::string& text, absl::string_view name, const MpressFigure9Bar& bar,
                const MpressFigure9Bar& plain, absl::string_view published) {
  const double gain =
      100 *
      (static_cast<double>(plain.step_time.value) / static_cast<double>(bar.step_time.value) - 1);
  const auto gigabytes = [](const MemorySaved& saved) {
    return static_cast<double>(saved.bytes.value) / kGigabyte;
  };
  absl::StrAppendFormat(&text, "%-21s %8.2f s %+6.1f %%  %-28s %9.0f %9.0f %9.0f\n", name,
                        static_cast<double>(bar.step_time.value) / kNanosPerSecond, gain, published,
                        gigabytes(bar.peers), gigabytes(bar.recomputed), gigabytes(bar.host));
}

struct PublishedGains {
  absl::string_view mapped = "-";
  absl::string_view complete = "-";
  absl::string_view striped_after = "-";  // over mapped
};

PublishedGains GainsOf(const MpressFigure9& figure) {
  if (figure.model != kFigure9Model) return {};
  if (figure.engines == CopyEngines::kOneForAllPeers) return {"0", "+11.0 %", "+11.0 %"};
  return {"+17.4 %", "+33.3 % (or striping alone)", "+13.5 % (or +33.3 %)"};
}

}  // namespace

absl::StatusOr<MpressFigure9> RunMpressFigure9(absl::string_view model, const Topology& topology,
                                               const MpressTools& tools) {
  SIPHON_ASSIGN_OR_RETURN(const MpressRow row, FindMpressRow(model));
  SIPHON_ASSIGN_OR_RETURN(const MpressInstance instance, MakeMpressInstance(row, topology, tools));
  constexpr MpressMapping kInOrder = MpressMapping::kInOrder;
  constexpr MpressMapping kSearched = MpressMapping::kSearched;
  constexpr MpressStriping kOneLender = MpressStriping::kOneLender;
  constexpr MpressStriping kStriped = MpressStriping::kStriped;
  MpressFigure9 figure{
      .model = row.name, .machine = topology.name, .engines = topology.copy_engines};
  const PlanningProblem& problem = instance.problem;
  SIPHON_ASSIGN_OR_RETURN(figure.plain, BarOf(problem, {kInOrder, kOneLender}));
  SIPHON_ASSIGN_OR_RETURN(figure.mapped, BarOf(problem, {kSearched, kOneLender}));
  SIPHON_ASSIGN_OR_RETURN(figure.striped, BarOf(problem, {kInOrder, kStriped}));
  SIPHON_ASSIGN_OR_RETURN(figure.complete, BarOf(problem, {kSearched, kStriped}));
  return figure;
}

std::string MpressFigure9Text(const MpressFigure9& ours) {
  std::string text = absl::StrFormat(
      "MPress, Figure 9: throughput of %s on %s, over workers in order and no striping\n"
      "%-21s %10s %8s  %-28s %9s %9s %9s\n",
      ours.model, ours.machine, "", "step", "gain", "published", "GB: D2D", "recompute", "host");
  const PublishedGains published = GainsOf(ours);
  AddBarLine(text, "neither", ours.plain, ours.plain, "-");
  AddBarLine(text, "device mapping", ours.mapped, ours.plain, published.mapped);
  AddBarLine(text, "striping", ours.striped, ours.plain, "-");
  AddBarLine(text, "mapping and striping", ours.complete, ours.plain, published.complete);
  AddBarLine(text, "both, over mapping", ours.complete, ours.mapped, published.striped_after);
  if (ours.engines == CopyEngines::kOneForAllPeers) {
    text +=
        "One copy engine serves all peers of a device here, so that stripes share memory out but "
        "are no faster than one copy.\n";
  }
  return text;
}

}  // namespace siphon
