// siphon simulate: a plan file as the simulator sees it.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/commands/command.h"
#include "launch/commands/plan_study.h"
#include "launch/commands/simulate_report.h"
#include "launch/commands/study_job.h"
#include "launch/config/read_text_file.h"
#include "launch/output/terminal.h"
#include "launch/output/text_file.h"
#include "launch/output/timeline_svg.h"
#include "launch/output/trace.h"
#include "launch/process/exit_codes.h"
#include "launch/profile/plan_in_file.h"
#include "launch/profile/plan_with_costs.h"
#include "launch/profile/predict_step.h"
#include "planner/marked_grid.h"
#include "planner/performance/device_spec.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kUsualColumns = 100;  // where the output is no terminal
constexpr absl::string_view kTitle = "predicted";

struct SimulateArguments {
  std::string plan;
  JobArguments job;
  std::string profile;
  std::string device;
  std::string plan_output;
  std::string trace;
  std::string html;
  std::string svg;
  int columns = 0;
  OutputFormat format = OutputFormat::kText;
};

absl::StatusOr<PlanText> LoadPlan(const std::string& path) {
  SIPHON_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, "plan"));
  auto plan = ParsePlanText(text);
  if (!plan.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ":", plan.status().message()));
  }
  return plan;
}

constexpr absl::string_view kKeepingStrategy = "keep";

// Whether anything says on what the job computes.
bool HasCosts(const SimulateArguments& arguments, const StudiedJob& studied) {
  return studied.job.pipeline.backend == "cpu" || studied.topology.has_value() ||
         !arguments.profile.empty() || !arguments.device.empty() ||
         !studied.job.pipeline.profile.empty();
}

// A plan, and why `siphon plan` finds that it does not fit. Of workers that keep everything the
// memory model knows more than the simulator: a plan that is a little too large may yet be
// simulated.
struct PlanToSimulate {
  PlanText plan;
  std::string misfit;  // empty: nothing is known against it
};

// Of the job with everything kept.
std::string MisfitOfKeeping(const PlannedJob& planned) {
  const absl::Status fits = CheckFits(planned);
  return absl::IsResourceExhausted(fits) ? SentenceOf(fits) : "";
}

// The plan of a job file as it would be trained: with everything kept or, where that does not fit,
// with what its memory.strategy does; where nothing fits, with everything kept. Costs are those of
// `siphon plan` in any case.
absl::StatusOr<PlanToSimulate> PlanOfJob(const SimulateArguments& arguments) {
  SIPHON_ASSIGN_OR_RETURN(const StudiedJob studied, StudyJob(arguments.job));
  const PlannedJob planned{studied.job, studied.model, studied.plan, studied.schedule_csv};
  const std::string misfit = MisfitOfKeeping(planned);
  if (!studied.job.memory.plan.empty()) {
    if (!arguments.profile.empty() || !arguments.device.empty()) {
      return ConfigError(studied.job, "memory.plan",
                         "a plan file has its own costs: leave out --profile and --device");
    }
    SIPHON_ASSIGN_OR_RETURN(PlanInFile file, LoadPlanInFile(studied.job));
    SIPHON_RETURN_IF_ERROR(CheckPlanOfJob(file, planned));
    const bool keeps = file.plan.memory.stages.empty();
    return PlanToSimulate{std::move(file.plan), keeps ? misfit : ""};
  }
  if (!HasCosts(arguments, studied)) {
    SIPHON_ASSIGN_OR_RETURN(PlanText kept, PlanWithCosts(planned, {}));
    return PlanToSimulate{std::move(kept), misfit};
  }
  PlanRequest request{
      .job = arguments.job, .profile = arguments.profile, .device = arguments.device};
  if (misfit.empty()) {
    PlanRequest keeping = request;
    keeping.strategy = std::string(kKeepingStrategy);
    keeping.bounds = false;
    SIPHON_ASSIGN_OR_RETURN(StudiedPlan kept, StudyPlan(keeping));
    if (kept.step.has_value()) return PlanToSimulate{std::move(kept.plan), ""};
  }
  SIPHON_ASSIGN_OR_RETURN(StudiedPlan fitting, StudyPlan(request));
  return PlanToSimulate{std::move(fitting.plan), std::move(fitting.misfit)};
}

absl::StatusOr<PlanToSimulate> PlanOf(const SimulateArguments& arguments) {
  const bool has_job = !arguments.job.job.empty();
  if (arguments.plan.empty() != has_job) {
    return absl::InvalidArgumentError(
        "simulate takes a plan file or a job file: siphon simulate --plan plan.txt, or siphon "
        "simulate --config JOB.yaml");
  }
  const bool costs = !arguments.profile.empty() || !arguments.device.empty();
  if (!has_job && (costs || !arguments.job.overrides.empty())) {
    return absl::InvalidArgumentError(
        "--profile, --device and --set belong to a job file (--config); a plan file has its own "
        "costs");
  }
  if (has_job) return PlanOfJob(arguments);
  SIPHON_ASSIGN_OR_RETURN(PlanText plan, LoadPlan(arguments.plan));
  return PlanToSimulate{std::move(plan), ""};
}

// Where it fits.
absl::StatusOr<SimulatedStep> StepOf(const PlanToSimulate& simulated) {
  absl::StatusOr<SimulatedStep> step = PredictStep(simulated.plan);
  if (!step.ok() || simulated.misfit.empty()) return step;
  return absl::ResourceExhaustedError(simulated.misfit);
}

absl::Status WriteFiles(const SimulateArguments& arguments, const SimulateReport& report) {
  if (!arguments.plan_output.empty()) {
    SIPHON_RETURN_IF_ERROR(WriteTextFile(arguments.plan_output, ToString(report.plan)));
  }
  if (!arguments.trace.empty()) {
    SIPHON_RETURN_IF_ERROR(
        WriteTextFile(arguments.trace, TraceJson(std::string(kTitle), report.step)));
  }
  const TimelinePage page = ReportPage(report);
  if (!arguments.html.empty()) {
    SIPHON_RETURN_IF_ERROR(WriteTextFile(arguments.html, TimelineHtml(page)));
  }
  if (!arguments.svg.empty()) {
    TimelinePicture picture = page.pictures[0];
    picture.title = page.title;
    SIPHON_RETURN_IF_ERROR(WriteTextFile(arguments.svg, TimelineSvg(picture)));
  }
  return absl::OkStatus();
}

// What a plan does wrong is the user's input; what does not fit has a code of its own.
int Refuse(const std::string& plan, const absl::Status& status) {
  const int code = ReportError(Annotate(status, plan));
  if (status.code() == absl::StatusCode::kResourceExhausted) return kExitDoesNotFit;
  return status.code() == absl::StatusCode::kFailedPrecondition ? kExitBadInput : code;
}

int Simulate(const SimulateArguments& arguments) {
  const absl::Status writable = CheckOutputs({{"--output", arguments.plan_output},
                                              {"--trace", arguments.trace},
                                              {"--html", arguments.html},
                                              {"--svg", arguments.svg}});
  if (!writable.ok()) return ReportError(writable);
  const auto plan = PlanOf(arguments);
  if (!plan.ok()) return ReportError(plan.status());
  const auto step = StepOf(*plan);
  if (!step.ok()) {
    return Refuse(arguments.plan.empty() ? arguments.job.job : arguments.plan, step.status());
  }
  const SimulateReport report{plan->plan, *step};
  if (const absl::Status written = WriteFiles(arguments, report); !written.ok()) {
    return ReportError(written);
  }
  if (arguments.format == OutputFormat::kJson) {
    std::fputs(ReportJson(report).c_str(), stdout);
    return kExitDone;
  }
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const int width = TerminalColumns();
  const int columns = arguments.columns > 0 ? arguments.columns : width > 0 ? width : kUsualColumns;
  std::fputs(
      ReportText(report, columns, terminal ? TextColors::kTerminal : TextColors::kNone).c_str(),
      stdout);
  return kExitDone;
}

}  // namespace

RunCommand AddSimulateCommand(CLI::App& app) {
  const auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* command =
      app.add_subcommand("simulate", "Predict a step of a plan: time, memory, links, waits");
  command
      ->add_option("--plan", arguments->plan,
                   "A plan file, as siphon train writes it; edit it as you like")
      ->type_name("plan.txt");
  AddJob(command, &arguments->job);
  command
      ->add_option("--profile", arguments->profile,
                   "Costs of the job's layers, as siphon profile writes them; default: the job's "
                   "pipeline.profile")
      ->type_name("profile.yaml");
  command
      ->add_option("--device", arguments->device,
                   absl::StrCat("Without a profile: calculate the costs for this device, one of ",
                                absl::StrJoin(KnownDeviceSpecs(), ", "),
                                ", or a file of siphon profile --calibrate; default: the "
                                "topology's devices, or CPU cores as most are"))
      ->type_name("NAME|FILE")
      ->excludes("--profile");
  command
      ->add_option("--output", arguments->plan_output, "Write the plan file of the job, with costs")
      ->type_name("plan.txt");
  command->add_option("--trace", arguments->trace, "Write the step for Perfetto (ui.perfetto.dev)")
      ->type_name("trace.json");
  command
      ->add_option("--html", arguments->html,
                   "Write the step and its memory as a page for a browser")
      ->type_name("FILE");
  command->add_option("--svg", arguments->svg, "Write the picture of that page alone")
      ->type_name("FILE");
  command
      ->add_option("--columns", arguments->columns,
                   "Letters in a line of the picture; default: the terminal's, or 100")
      ->check(CLI::Range(40, 10'000))
      ->type_name("N");
  AddFormat(command, &arguments->format);
  command->footer(
      "A job file is simulated as it would be trained: with everything kept or, where that does "
      "not fit, with\nwhat its memory.strategy does. Its costs are those of siphon plan: "
      "--profile, --device, the job's\npipeline.profile, or else its topology's devices and links, "
      "or CPU cores as most are. Only where backend is\ncuda and nothing says which devices, F, I "
      "and W take one unit of time each.\n"
      "A plan that deadlocks, uses activations that are away, or lacks an action is refused with "
      "exit code 2\nand its programs, the cell marked; one that exceeds a capacity with exit code "
      "3.");
  return [arguments] { return Simulate(*arguments); };
}

}  // namespace siphon
