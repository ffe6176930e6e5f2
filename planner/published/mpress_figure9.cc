#include "planner/published/mpress_figure9.h"

#include "absl/strings/str_format.h"
#include "planner/status.h"
#include "planner/strategies/mpress.h"

namespace siphon {
namespace {

absl::StatusOr<Nanos> StepTime(const PlanningProblem& problem, const MpressOptions& options) {
  SIPHON_ASSIGN_OR_RETURN(const PlannedStep planned, PlanMpress(problem, options));
  return planned.simulated.step_time;
}

// Throughput over that of `plain`, in percent more.
double Gain(Nanos plain, Nanos step) {
  return 100 * (static_cast<double>(plain.value) / static_cast<double>(step.value) - 1);
}

}  // namespace

absl::StatusOr<MpressFigure9> RunMpressFigure9(const Topology& topology, const MpressTools& tools) {
  SIPHON_ASSIGN_OR_RETURN(const MpressRow row, FindMpressRow("GPT-15.4B"));
  SIPHON_ASSIGN_OR_RETURN(const MpressInstance instance, MakeMpressInstance(row, topology, tools));
  constexpr MpressMapping kInOrder = MpressMapping::kInOrder;
  constexpr MpressMapping kSearched = MpressMapping::kSearched;
  constexpr MpressStriping kOneLender = MpressStriping::kOneLender;
  constexpr MpressStriping kStriped = MpressStriping::kStriped;
  MpressFigure9 figure{.machine = topology.name};
  SIPHON_ASSIGN_OR_RETURN(figure.plain, StepTime(instance.problem, {kInOrder, kOneLender}));
  SIPHON_ASSIGN_OR_RETURN(figure.mapped, StepTime(instance.problem, {kSearched, kOneLender}));
  SIPHON_ASSIGN_OR_RETURN(figure.striped, StepTime(instance.problem, {kInOrder, kStriped}));
  SIPHON_ASSIGN_OR_RETURN(figure.complete, StepTime(instance.problem, {kSearched, kStriped}));
  return figure;
}

std::string MpressFigure9Text(const MpressFigure9& ours, CopyEngines engines) {
  const bool is_mesh = engines == CopyEngines::kOnePerPeer;
  std::string text = absl::StrFormat(
      "MPress, Figure 9: throughput of GPT-15.4B on %s, over workers in order and no striping\n"
      "device mapping          %+6.1f %%, published %s\n"
      "striping                %+6.1f %%\n"
      "mapping and striping    %+6.1f %%, published %s\n",
      ours.machine, Gain(ours.plain, ours.mapped), is_mesh ? "+17.4 %" : "0",
      Gain(ours.plain, ours.striped), Gain(ours.plain, ours.complete),
      is_mesh ? "+33.3 % (or striping alone)" : "+11.0 %");
  if (!is_mesh) {
    text +=
        "One copy engine serves all peers of a device here, so that stripes share memory out but "
        "are no faster than one copy.\n";
  }
  return text;
}

}  // namespace siphon
