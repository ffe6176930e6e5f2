// siphon schedule: a pipeline schedule as a picture, with what follows from its shape.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "launch/commands/command.h"
#include "launch/commands/schedule_report.h"
#include "launch/config/closest_name.h"
#include "launch/config/read_text_file.h"
#include "launch/output/terminal.h"
#include "launch/process/exit_codes.h"
#include "planner/check_residency.h"
#include "planner/status.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

constexpr int kUsualColumns = 100;  // where the output is no terminal
constexpr absl::string_view kFromFile = "csv";

struct ScheduleArguments {
  std::string name;
  int workers = 4;
  int chunks = 1;
  int microbatches = 8;
  ScheduleOptions options;
  std::string warm_up = "a";
  std::string file;
  std::string format = "text";
  std::vector<int> most_live;
  bool communication = false;
  bool merge_backward = false;
  bool all = false;
  int columns = 0;
  // Empty: not given.
  CLI::Option* workers_flag = nullptr;
  CLI::Option* chunks_flag = nullptr;
  CLI::Option* microbatches_flag = nullptr;
};

absl::StatusOr<ScheduleEntry> FindOrSuggest(const std::string& name) {
  absl::StatusOr<ScheduleEntry> entry = FindSchedule(name);
  if (entry.ok()) return entry;
  std::vector<std::string> names;
  for (const ScheduleEntry& known : ScheduleRegistry()) names.push_back(known.name);
  const std::string closest = ClosestName(name, names);
  if (closest.empty()) return entry;
  return absl::NotFoundError(absl::StrCat("unknown schedule ", QuoteForMessage(name),
                                          "; did you mean '", closest,
                                          "'? siphon schedule --all lists them"));
}

// The shape of a file is its own, unless the flags say otherwise. A file with messages must be able
// to run as it stands.
absl::Status TakeFile(const ScheduleArguments& arguments, ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(shape.options.csv, ReadTextFile(arguments.file, "schedule"));
  const absl::StatusOr<Schedule> parsed = ParseScheduleCsv(shape.options.csv);
  if (!parsed.ok()) {
    const absl::string_view problem = parsed.status().message();  // at a place, or of the whole
    const bool has_place = !problem.empty() && absl::ascii_isdigit(problem.front());
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.file, has_place ? ":" : ": ", problem));
  }
  const absl::Status valid = ValidateSchedule(*parsed, SchedulePurpose::kTraining);
  if (!valid.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(arguments.file, ": ", valid.message()));
  }
  if (arguments.workers_flag->empty()) shape.workers = WorkerCount(*parsed);
  if (arguments.microbatches_flag->empty()) shape.microbatches = parsed->microbatches;
  if (arguments.chunks_flag->empty() && shape.workers > 0) {
    shape.chunks = std::max(1, StageCount(*parsed) / shape.workers);
  }
  return absl::OkStatus();
}

ScheduleShape ShapeOf(const ScheduleArguments& arguments, const ScheduleEntry& entry) {
  ScheduleShape shape = {.workers = arguments.workers,
                         .chunks = arguments.chunks_flag->empty() ? entry.chunks : arguments.chunks,
                         .microbatches = arguments.microbatches,
                         .options = arguments.options};
  shape.options.warm_up = arguments.warm_up == "b" ? WarmUpPolicy::kB : WarmUpPolicy::kA;
  return shape;
}

ShownParts PartsOf(const ScheduleArguments& arguments) {
  return {
      .messages = arguments.communication ? ShownMessages::kAll : ShownMessages::kNone,
      .backwards = arguments.merge_backward ? ShownBackwards::kMerged : ShownBackwards::kAsBuilt};
}

// Refuses a schedule that keeps more activations than --most_live.
absl::Status CheckMostLive(const ScheduleArguments& arguments, const ScheduleReport& report) {
  std::vector<int> limits = arguments.most_live;
  if (limits.empty()) return absl::OkStatus();
  const int workers = WorkerCount(report.shown);
  if (limits.size() == 1) limits = std::vector<int>(workers, limits.front());
  if (static_cast<int>(limits.size()) != workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("--most_live: ", limits.size(), " numbers, but the schedule has ", workers,
                     " workers; write one number for all, or one a worker"));
  }
  const absl::Status fits = CheckLiveActivations(report.shown, limits);
  if (fits.ok()) return fits;
  return absl::InvalidArgumentError(absl::StrCat(
      arguments.file.empty() ? absl::StrCat("schedule ", report.entry.name) : arguments.file, ": ",
      fits.message()));
}

absl::StatusOr<std::string> Overview(const ScheduleArguments& arguments) {
  const ScheduleShape any = ShapeOf(arguments, ScheduleEntry{});
  std::vector<std::string> given = GivenOptions(any.options);
  if (!arguments.most_live.empty()) given.emplace_back("most_live");
  if (arguments.merge_backward) given.emplace_back("merge_backward");
  if (!given.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", given.front(), " is for one schedule; name it with --name"));
  }
  if (arguments.format == "csv") {
    return absl::InvalidArgumentError("--format csv is for one schedule; name it with --name");
  }
  std::vector<ScheduleOverviewRow> rows;
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    rows.push_back({entry, ReportSchedule(entry, ShapeOf(arguments, entry), {})});
  }
  return arguments.format == "json" ? ScheduleOverviewJson(rows) : ScheduleOverviewText(rows);
}

absl::StatusOr<std::string> OneSchedule(const ScheduleArguments& arguments,
                                        const std::string& name) {
  SIPHON_ASSIGN_OR_RETURN(const ScheduleEntry entry, FindOrSuggest(name));
  ScheduleShape shape = ShapeOf(arguments, entry);
  if (!arguments.file.empty()) {
    if (name != kFromFile) {
      return absl::InvalidArgumentError(absl::StrCat("--file is for schedule csv, not for ", name));
    }
    SIPHON_RETURN_IF_ERROR(TakeFile(arguments, shape));
  } else if (name == kFromFile) {
    return absl::InvalidArgumentError("schedule csv needs a file: --file schedule.csv");
  }
  SIPHON_ASSIGN_OR_RETURN(const ScheduleReport report,
                          ReportSchedule(entry, shape, PartsOf(arguments)));
  SIPHON_RETURN_IF_ERROR(CheckMostLive(arguments, report));
  if (arguments.format == "csv") return ToCsv(report.shown);
  if (arguments.format == "json") return ScheduleReportJson(report);
  const int width = TerminalColumns();
  const int columns = arguments.columns > 0 ? arguments.columns : width > 0 ? width : kUsualColumns;
  return ScheduleReportText(report, columns,
                            isatty(STDOUT_FILENO) != 0 ? TextColors::kTerminal : TextColors::kNone);
}

int PrintSchedule(const ScheduleArguments& arguments) {
  std::string name = arguments.name;
  if (name.empty() && !arguments.file.empty()) name = std::string(kFromFile);
  const absl::StatusOr<std::string> text =
      name.empty() || arguments.all ? Overview(arguments) : OneSchedule(arguments, name);
  if (!text.ok()) return ReportError(text.status());
  std::fputs(text->c_str(), stdout);
  return kExitDone;
}

void AddOptions(CLI::App* command, ScheduleArguments* arguments) {
  ScheduleOptions& options = arguments->options;
  const std::string group = "Options of single schedules";
  command
      ->add_option("--in_flight", options.in_flight_limit,
                   "dapple: microbatches that fit into memory; 0: no limit")
      ->type_name("N")
      ->group(group);
  command
      ->add_option(
          "--warm_up", arguments->warm_up,
          "dapple: forwards before the first backward, at stage s of P: a: P - s, b: 2 (P - "
          "s) - 1; default a")
      ->check(CLI::IsMember({"a", "b"}).description(""))
      ->type_name("a|b")
      ->group(group);
  command
      ->add_option("--depth", options.depth,
                   "pipedream: minibatches in flight of each stage; default P, P - 1, .. 1")
      ->delimiter(',')
      ->option_text("N,N,..")
      ->group(group);
  command
      ->add_option("--forward_pack", options.forward_pack,
                   "harmony: stages that a worker runs forward as one")
      ->type_name("N")
      ->group(group);
  command->add_option("--backward_pack", options.backward_pack, "harmony: the same backward")
      ->type_name("N")
      ->group(group);
  command
      ->add_option("--microbatch_group", options.microbatch_group,
                   "harmony: microbatches through a pack before the next, default all; "
                   "pipedream_2bw: between two updates, default one a stage")
      ->type_name("N")
      ->group(group);
  command
      ->add_option("--backward_group", options.backward_group,
                   "harmony: the same backward, default as forward")
      ->type_name("N")
      ->group(group);
  command
      ->add_option("--file", arguments->file,
                   "csv: a file in torch.distributed.pipelining's formats; its shape is taken from "
                   "it")
      ->type_name("FILE")
      ->group(group);
}

}  // namespace

RunCommand AddScheduleCommand(CLI::App& app) {
  const auto arguments = std::make_shared<ScheduleArguments>();
  CLI::App* command = app.add_subcommand(
      "schedule", "Print a pipeline schedule: who does what when, bubble, memory");
  command
      ->add_option("name,--name", arguments->name,
                   "The schedule; without, or with --all, all of them in a table")
      ->type_name("NAME");
  arguments->workers_flag =
      command->add_option("--workers", arguments->workers, "Workers P; default 4")->type_name("P");
  arguments->chunks_flag = command
                               ->add_option("--chunks", arguments->chunks,
                                            "Stages a worker V; default: as the schedule likes")
                               ->type_name("V");
  arguments->microbatches_flag =
      command->add_option("--microbatches", arguments->microbatches, "Microbatches m; default 8")
          ->type_name("M");
  command
      ->add_option("--format", arguments->format,
                   "text, json, or csv as torch.distributed.pipelining reads it; default text")
      ->check(CLI::IsMember({"text", "json", "csv"}).description(""))
      ->type_name("text|json|csv");
  command->add_flag("--communication", arguments->communication,
                    "With the messages between workers");
  command->add_flag("--merge_backward", arguments->merge_backward,
                    "One B for each I that its own W follows at once");
  command
      ->add_option("--most_live", arguments->most_live,
                   "Activations that a worker may keep at once, of pairs of stage and microbatch: "
                   "one number for all, or one a worker; a schedule that keeps more is refused")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000'000))
      ->option_text("N[,N..]");
  command->add_flag("--all", arguments->all, "All schedules in a table");
  command
      ->add_option("--columns", arguments->columns,
                   "Letters in a line of the picture; default: the terminal's, or 100")
      ->check(CLI::Range(40, 10'000))
      ->type_name("N");
  AddOptions(command, arguments.get());
  command->footer(
      "All stages are alike here, a forward takes one step and messages are free; siphon simulate "
      "knows real times.\nA schedule that does not take the shape, or a file that cannot run, is "
      "refused with exit code 2.");
  return [arguments] { return PrintSchedule(*arguments); };
}

}  // namespace siphon
