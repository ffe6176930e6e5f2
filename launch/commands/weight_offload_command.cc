// siphon weight_offload: what a step costs when the weights of a model do not fit on one device.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "launch/commands/command.h"
#include "launch/commands/out_of_core_report.h"
#include "launch/commands/weight_offload_report.h"
#include "launch/output/text_file.h"
#include "launch/process/exit_codes.h"
#include "planner/status.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/one_device_problem.h"

namespace siphon {
namespace {

constexpr double kTableRate = 12;  // GB/s, Table 1

struct WeightOffloadArguments {
  std::optional<int> figure;  // absent: Table 1
  std::string svg;
  // Absent: every row of the table; the figure's row has these of GPT-2 of depth 74 and batch 64.
  std::optional<std::string> network;
  std::optional<int> depth;
  std::optional<int> batch;
  OutputFormat format = OutputFormat::kText;
};

// What `auto` plans; nothing where no plan of it fits.
absl::StatusOr<std::optional<Nanos>> AutomaticStep(const WeightOffloadProblem& problem) {
  SIPHON_ASSIGN_OR_RETURN(const PlanningProblem one, OneDeviceProblem(problem));
  SIPHON_ASSIGN_OR_RETURN(const MemoryStrategy strategy, FindMemoryStrategy("auto"));
  const auto planned = strategy.plan(one);
  if (absl::IsResourceExhausted(planned.status())) return std::nullopt;
  SIPHON_RETURN_IF_ERROR(planned.status());
  return planned->simulated.step_time;
}

// A row's network, depth and batch, where not chosen those of the first row.
absl::StatusOr<WeightOffloadRow> FindRow(const WeightOffloadArguments& arguments) {
  const WeightOffloadRow& first = WeightOffloadTable1().front();
  const auto row = FindWeightOffloadRow(arguments.network.value_or(std::string(first.network)),
                                        arguments.depth.value_or(first.depth),
                                        arguments.batch.value_or(first.batch));
  if (!row.ok()) return Annotate(row.status(), "--network, --depth, --batch");
  return row;
}

std::vector<WeightOffloadRow> ChosenRows(const WeightOffloadArguments& arguments) {
  std::vector<WeightOffloadRow> rows;
  for (const WeightOffloadRow& row : WeightOffloadTable1()) {
    if (arguments.network.value_or(std::string(row.network)) == row.network &&
        arguments.depth.value_or(row.depth) == row.depth &&
        arguments.batch.value_or(row.batch) == row.batch) {
      rows.push_back(row);
    }
  }
  return rows;
}

int PrintTable(const WeightOffloadArguments& arguments) {
  const std::vector<WeightOffloadRow> chosen = ChosenRows(arguments);
  if (chosen.empty()) return ReportError(FindRow(arguments).status());
  std::vector<ComparedWeightOffloadRow> rows;
  for (const WeightOffloadRow& row : chosen) {
    const WeightOffloadProblem problem = PublishedWeightOffload(row, kTableRate);
    const auto times = CompareWeightOffload(problem);
    if (!times.ok()) return ReportError(times.status());
    const auto automatic = AutomaticStep(problem);
    if (!automatic.ok()) return ReportError(automatic.status());
    rows.push_back({row, *times, *automatic});
  }
  const bool json = arguments.format == OutputFormat::kJson;
  const std::string text = json ? WeightOffloadTableJson(rows) : WeightOffloadTableText(rows);
  std::fputs(text.c_str(), stdout);
  return kExitDone;
}

absl::StatusOr<Figure> FigureOf(const WeightOffloadArguments& arguments) {
  if (arguments.figure != 4) {
    return absl::InvalidArgumentError(
        "--figure: only figure 4 of the weight offloading paper is calculated");
  }
  SIPHON_ASSIGN_OR_RETURN(const WeightOffloadRow row, FindRow(arguments));
  return WeightOffloadFigure4(row);
}

int PrintFigure(const WeightOffloadArguments& arguments) {
  const auto figure = FigureOf(arguments);
  if (!figure.ok()) return ReportError(figure.status());
  if (!arguments.svg.empty()) {
    const absl::Status written = WriteTextFile(arguments.svg, FigureSvg(*figure));
    if (!written.ok()) return ReportError(written);
  }
  const bool json = arguments.format == OutputFormat::kJson;
  std::fputs((json ? FigureJson(*figure) : FigureText(*figure)).c_str(), stdout);
  return kExitDone;
}

int RunWeightOffload(const WeightOffloadArguments& arguments) {
  if (arguments.figure.has_value()) return PrintFigure(arguments);
  if (!arguments.svg.empty()) {
    return ReportError(absl::InvalidArgumentError("--svg: only a figure is drawn; add --figure 4"));
  }
  return PrintTable(arguments);
}

}  // namespace

RunCommand AddWeightOffloadCommand(CLI::App& app) {
  const auto arguments = std::make_shared<WeightOffloadArguments>();
  CLI::App* command = app.add_subcommand(
      "weight_offload", "Predict training whose weights do not fit on one device, as published");
  command
      ->add_option("--figure", arguments->figure,
                   "Calculate figure 4 (time against the link's rate) instead of Table 1")
      ->type_name("4");
  command->add_option("--svg", arguments->svg, "Draw the figure into this SVG file")
      ->type_name("plot.svg");
  command
      ->add_option("--network", arguments->network,
                   "Rows of this network alone: GPT-2 or Bert; the figure's is GPT-2")
      ->type_name("NAME");
  command
      ->add_option("--depth", arguments->depth, "Rows of so many layers alone; the figure's has 74")
      ->type_name("N");
  command
      ->add_option("--batch", arguments->batch,
                   "Rows of so many samples alone; the figure's has 64")
      ->type_name("N");
  AddFormat(command, &arguments->format);
  command->footer(
      "Beaumont et al. 2022 (hal-03580767). L2L keeps one layer on the device; greedy lets weights "
      "leave\nbetween their uses and sends each once a step; greedy* sends one again that leaves "
      "twice; trimmed is\nours: greedy without the removals that buy nothing. No plan is shorter "
      "than bound.");
  return [arguments] { return RunWeightOffload(*arguments); };
}

}  // namespace siphon
