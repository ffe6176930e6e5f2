#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/commands/plan_explain.h"

namespace siphon {
namespace {

std::string TensorsText(const TensorGroup& group, const StageRange& layers) {
  return absl::StrCat(
      GroupKindName(group.kind), " of ",
      layers.end - layers.begin == 1
          ? absl::StrCat("layer ", layers.begin)
          : absl::StrCat("layers ", layers.begin, " to ", layers.end - 1),
      group.first_tensors == 0 ? "" : absl::StrCat(", first ", group.first_tensors, " tensors"));
}

std::string ChoiceText(const GroupChoice& choice) {
  std::string text(PlacementName(choice.placement));
  for (const Stripe& stripe : choice.stripes) {
    absl::StrAppend(&text, &stripe == choice.stripes.data() ? " to device " : ", ",
                    stripe.lender.value, " ", FormatBytes(stripe.bytes));
  }
  if (choice.steps_on_device) absl::StrAppend(&text, ", steps on device");
  return text;
}

std::string GapText(const ExplainedGroup& group) {
  if (group.longest_gap == Nanos(0)) return "-";
  if (group.shortest_gap == group.longest_gap) return FormatNanos(group.longest_gap);
  return absl::StrCat(FormatNanos(group.shortest_gap), " to ", FormatNanos(group.longest_gap));
}

std::string FirstGapText(const ExplainedGroup& group) {
  if (group.unused_until == Nanos(0)) return "-";
  return absl::StrCat(FormatNanos(group.unused_from), " - ", FormatNanos(group.unused_until));
}

// Where it goes when its place refuses it.
std::string SecondChoiceText(const ExplainedGroup& group) {
  const GroupChoice& choice = group.planned.choice;
  if (!IsSwap(choice.placement)) return "-";
  if (choice.second_choice != Placement::kKeep) {
    if (group.stays_for_host_step) return "a file on the drive";
    return std::string(PlacementName(choice.second_choice));
  }
  return group.stays_for_host_step ? "none: no room on a drive" : "none: no room elsewhere";
}

// "384 MiB"; "15 of 20 x 384 MiB" where of 20 copies at once 15 go where it is placed
std::string BytesText(const ExplainedGroup& group) {
  const std::string bytes = FormatBytes(group.planned.group.bytes);
  if (group.live <= 1) return bytes;
  const std::string some =
      group.goes < group.live ? absl::StrCat(group.goes, " of ") : std::string();
  return absl::StrCat(some, group.live, " x ", bytes);
}

// Of one group, all that its row says beside which layers it is of.
std::vector<std::string> CellsOf(const ExplainedGroup& group) {
  return {BytesText(group),        GapText(group),
          FirstGapText(group),     ChoiceText(group.planned.choice),
          SecondChoiceText(group), group.why};
}

// Groups of layers behind each other of which the same is said.
struct Run {
  TensorGroup first;
  StageRange layers;
  int groups = 1;
  std::vector<std::string> cells;
};

bool Continues(const Run& run, const TensorGroup& group, const std::vector<std::string>& cells) {
  return group.kind == run.first.kind && group.first_tensors == run.first.first_tensors &&
         group.layers.begin == run.layers.end && cells == run.cells;
}

std::vector<Run> RunsOf(const ExplainedStage& stage) {
  std::vector<Run> runs;
  for (const ExplainedGroup& group : stage.groups) {
    const TensorGroup& tensors = group.planned.group;
    std::vector<std::string> cells = CellsOf(group);
    if (!runs.empty() && Continues(runs.back(), tensors, cells)) {
      runs.back().layers.end = tensors.layers.end;
      ++runs.back().groups;
      continue;
    }
    runs.push_back({.first = tensors, .layers = tensors.layers, .cells = std::move(cells)});
  }
  return runs;
}

PageTable StageTable(const ExplainedStage& stage, const StudiedPlan& studied) {
  const PlanStage& facts = studied.plan.stages[stage.stage.value];
  PageTable table{
      .title = absl::StrCat("stage ", stage.stage.value, " on worker ", stage.worker.value,
                            ", device ", stage.device.value, ": ", facts.names),
      .header = {"tensors", "bytes", "unused for", "the first time", "choice", "if refused",
                 "because"}};
  for (const Run& run : RunsOf(stage)) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(absl::StrCat(TensorsText(run.first, run.layers),
                               run.groups > 1 ? absl::StrCat(", ", run.groups, " groups") : ""));
    row.insert(row.end(), run.cells.begin(), run.cells.end());
    if (run.groups > 1) row[1] = absl::StrCat(run.groups, " x ", row[1]);
  }
  return table;
}

}  // namespace

std::vector<PageTable> ExplainTables(const StudiedPlan& studied) {
  std::vector<PageTable> tables;
  for (const ExplainedStage& stage : ExplainPlan(studied)) {
    tables.push_back(StageTable(stage, studied));
  }
  return tables;
}

}  // namespace siphon
