// siphon memory: bytes of each stage and kind, before anything runs.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "launch/commands/command.h"
#include "launch/commands/memory_report.h"
#include "launch/commands/plan_fixes.h"
#include "launch/commands/plan_study.h"
#include "launch/commands/planning_progress.h"
#include "launch/commands/study_job.h"
#include "launch/process/exit_codes.h"
#include "launch/profile/plan_with_costs.h"
#include "launch/profile/profile_file.h"
#include "planner/status.h"

namespace siphon {
namespace {

struct MemoryArguments {
  JobArguments job;
  Accounting accounting = Accounting::kRuntime;
  MemoryDetail detail = MemoryDetail::kStages;
  std::string profile;
  std::string report;
  OutputFormat format = OutputFormat::kText;
};

// What planning says of a job that does not fit with everything kept: the strategy that makes room,
// which is memory.strategy or, where the job names none, auto; where it does not, the changes that
// `siphon plan` names.
void PlanMisfit(const MemoryArguments& arguments, MemoryReport& report) {
  PlanningProgress progress;
  progress.Say("planning");
  const PlanRequest request{.job = arguments.job,
                            .profile = arguments.profile,
                            .news = progress.News(),
                            .goal = PlanningGoal::kAnyThatFits,
                            .bounds = false};
  const auto plan = StudyPlan(request);
  if (!plan.ok()) return;
  // A plan that keeps everything is no news, whatever it says of the last byte.
  if (plan->step.has_value()) {
    if (plan->strategy != "keep") report.fitting_strategy = plan->strategy;
    return;
  }
  report.tried = FindFixes(request, *plan, [&](absl::string_view doing) { progress.Say(doing); });
}

absl::StatusOr<MemoryReport> Study(const MemoryArguments& arguments) {
  MemoryReport report;
  report.accounting = arguments.accounting;
  SIPHON_ASSIGN_OR_RETURN(StudiedJob studied, StudyJob(arguments.job));
  report.job = std::move(studied.job);
  report.model = std::move(studied.model);
  report.plan = std::move(studied.plan);
  std::optional<ProfileFile> profile;
  if (!arguments.profile.empty()) {
    SIPHON_ASSIGN_OR_RETURN(profile, LoadProfile(arguments.profile));
    SIPHON_RETURN_IF_ERROR(
        CheckProfileFits(*profile, report.model, report.plan.microbatch, arguments.profile));
  }
  const PlannedJob planned{report.job, report.model, report.plan, studied.schedule_csv,
                           profile.has_value() ? &profile->model : nullptr};
  SIPHON_ASSIGN_OR_RETURN(report.estimate, EstimateJob(planned, report.accounting));
  if (report.accounting == Accounting::kRuntime &&
      FindMisfit(report.job, report.estimate).has_value()) {
    report.changes = ChangesThatFit(planned);
    PlanMisfit(arguments, report);
  }
  return report;
}

int ShowPublished(OutputFormat format) {
  const auto text = format == OutputFormat::kJson ? PublishedJson() : PublishedText();
  if (!text.ok()) return ReportError(text.status());
  std::fputs(text->c_str(), stdout);
  return kExitDone;
}

int Memory(const MemoryArguments& arguments) {
  if (!arguments.report.empty()) return ShowPublished(arguments.format);
  if (arguments.job.job.empty()) {
    return ReportError(absl::InvalidArgumentError(
        "memory needs a job file: siphon memory JOB.yaml, or --report published for the figures "
        "of MPress"));
  }
  const auto report = Study(arguments);
  if (!report.ok()) return ReportError(report.status());
  const std::string text = arguments.format == OutputFormat::kJson
                               ? MemoryJson(*report, arguments.detail)
                               : MemoryText(*report, arguments.detail);
  std::fputs(text.c_str(), stdout);
  const bool fits = !FindMisfit(report->job, report->estimate).has_value();
  return fits || !report->fitting_strategy.empty() ? kExitDone : kExitDoesNotFit;
}

}  // namespace

RunCommand AddMemoryCommand(CLI::App& app) {
  const auto arguments = std::make_shared<MemoryArguments>();
  CLI::App* command =
      app.add_subcommand("memory", "Bytes of a job by stage and kind; says whether it fits");
  AddJob(command, &arguments->job);
  command
      ->add_option_function<std::string>(
          "--accounting",
          [arguments](const std::string& name) {
            arguments->accounting =
                name == "published" ? Accounting::kPublished : Accounting::kRuntime;
          },
          "runtime (what our workers hold) or published (as papers count); default runtime")
      ->check(CLI::IsMember({"runtime", "published"}).description(""))
      ->type_name("runtime|published");
  command->add_flag_callback(
      "--layers", [arguments] { arguments->detail = MemoryDetail::kLayers; },
      "Show each layer and each tensor that it saves");
  command
      ->add_option("--profile", arguments->profile,
                   "Take activations from a profile that siphon profile measured")
      ->type_name("profile.yaml");
  command
      ->add_option("--report", arguments->report,
                   "published: our figures beside Tables I and II of MPress; needs no job")
      ->check(CLI::IsMember({"published"}).description(""))
      ->type_name("published");
  AddFormat(command, &arguments->format);
  command->footer(
      "Reads no data where model.vocabulary is given. The exit code is 3 where memory.capacity is "
      "exceeded\nand memory.strategy finds no room either (siphon plan).");
  return [arguments] { return Memory(*arguments); };
}

}  // namespace siphon
