// siphon plan: decides how a job's step fits into memory, and what it takes then.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/commands/command.h"
#include "launch/commands/known_plans.h"
#include "launch/commands/plan_compare.h"
#include "launch/commands/plan_fixes.h"
#include "launch/commands/plan_page.h"
#include "launch/commands/plan_published.h"
#include "launch/commands/plan_report.h"
#include "launch/commands/plan_study.h"
#include "launch/commands/planning_progress.h"
#include "launch/output/cache_directory.h"
#include "launch/output/text_file.h"
#include "launch/process/exit_codes.h"
#include "launch/process/run_together.h"
#include "planner/performance/device_spec.h"
#include "planner/status.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {
namespace {

struct PlanArguments {
  PlanRequest request;
  std::vector<std::string> what_ifs;
  bool compares = false;
  std::string output;
  std::string page;
  std::string published;
  PlanDetail detail = PlanDetail::kSummary;
  OutputFormat format = OutputFormat::kText;
};

// All that would be refused after minutes of planning.
absl::Status CheckArguments(const PlanArguments& arguments) {
  SIPHON_RETURN_IF_ERROR(
      CheckOutputs({{"--output", arguments.output}, {"--report", arguments.page}}));
  if (arguments.what_ifs.empty()) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(CheckRequest(arguments.request));
  for (const std::string& what_if : arguments.what_ifs) {
    SIPHON_RETURN_IF_ERROR(
        Annotate(CheckRequest(WithSettings(arguments.request, SettingsOfWhatIf(what_if))),
                 absl::StrCat("--what-if ", what_if)));
  }
  return absl::OkStatus();
}

using Say = std::function<void(absl::string_view)>;

absl::StatusOr<WhatIf> StudyWhatIf(const PlanRequest& asked, const std::string& setting,
                                   const Say& say) {
  say(absl::StrCat("planning with ", setting));
  const PlanRequest request = WithSettings(asked, SettingsOfWhatIf(setting));
  auto changed = StudyPlan(request);
  if (!changed.ok()) return Annotate(changed.status(), absl::StrCat("--what-if ", setting));
  WhatIf what_if{setting, *std::move(changed)};
  if (what_if.plan.step.has_value()) return what_if;
  what_if.fix = FindFix(request, what_if.plan, say, [](const PlanFix&) { return true; });
  return what_if;
}

struct StudiedWhatIfs {
  std::vector<WhatIf> plans;
  absl::Status refused;  // of the first one that cannot be planned
};

// Several at once.
StudiedWhatIfs StudyWhatIfs(PlanRequest request, const std::vector<std::string>& settings,
                            const Say& say) {
  if (settings.size() > 1) request.news = nullptr;
  std::vector<absl::StatusOr<WhatIf>> studied(settings.size());
  RunTogether(static_cast<int>(settings.size()),
              [&](int index) { studied[index] = StudyWhatIf(request, settings[index], say); });
  StudiedWhatIfs what_ifs;
  for (absl::StatusOr<WhatIf>& one : studied) {
    what_ifs.refused.Update(one.status());
    if (one.ok()) what_ifs.plans.push_back(*std::move(one));
  }
  return what_ifs;
}

// By Harmony's schedule, where the job's may be what is slow.
std::optional<StudiedPlan> FasterElsewhere(PlanRequest request, const StudiedPlan& plan,
                                           const Say& say) {
  if (!plan.step.has_value() || !MayBeSlowForItsSchedule(plan)) return std::nullopt;
  say("trying Harmony's schedule");
  request.strategy = std::string(kHarmonyStrategy);
  absl::StatusOr<StudiedPlan> tried = StudyPlan(request);
  const bool is_faster =
      tried.ok() && tried->step.has_value() && tried->step->step_time < plan.step->step_time;
  return is_faster ? std::optional(*std::move(tried)) : std::nullopt;
}

// What has been planned is not lost where a change of it cannot be.
struct Study {
  PlanReport report;
  absl::Status refused;
};

absl::StatusOr<Study> StudyAll(PlanArguments arguments) {
  PlanningProgress progress;
  arguments.request.news = progress.News();
  progress.Say("planning");
  SIPHON_ASSIGN_OR_RETURN(StudiedPlan plan, StudyPlan(arguments.request));
  PlanReport report{.detail = arguments.detail, .plan = std::move(plan)};
  const auto say = [&](absl::string_view doing) { progress.Say(doing); };
  if (!report.plan.step.has_value()) {
    TriedFixes tried = FindFixes(arguments.request, report.plan, say);
    report.fixes = std::move(tried.fixes);
    report.in_vain = std::move(tried.in_vain);
    report.plan.misfit += HostReason(report.plan, report.fixes);
  }
  StudiedWhatIfs what_ifs = StudyWhatIfs(arguments.request, arguments.what_ifs, say);
  report.what_ifs = std::move(what_ifs.plans);
  if (!arguments.compares) {
    report.faster = FasterElsewhere(arguments.request, report.plan, say);
  } else {
    report.comparison = ComparePlans(arguments.request, report.plan, say);
  }
  return Study{std::move(report), std::move(what_ifs.refused)};
}

// Each, whatever becomes of the other. Errors: of the first that failed.
absl::Status WriteFiles(const PlanArguments& arguments, const PlanReport& report) {
  absl::Status status;
  if (report.plan.step.has_value() && !arguments.output.empty()) {
    status.Update(WriteTextFile(arguments.output, ToString(report.plan.plan)));
  }
  if (!arguments.page.empty()) {
    status.Update(WriteTextFile(arguments.page, TimelineHtml(PlanPage(report))));
  }
  return status;
}

// For `siphon train`, which need not search for it then.
void KeepForTrain(const StudiedPlan& plan) {
  if (!plan.is_of_train) return;
  PlanText text = plan.plan;
  text.predicted.lower_bound = Nanos(0);  // which that one does not look for
  KnownPlans(CacheDirectory()).Keep(plan.job, ToString(text));
}

int ShowPublished(const PlanArguments& arguments) {
  const auto text = [&] {
    PlanningProgress progress;
    return PublishedPlans(arguments.published, arguments.format,
                          [&](absl::string_view doing) { progress.Say(doing); });
  }();
  if (!text.ok()) return ReportError(text.status());
  std::fputs(text->c_str(), stdout);
  return kExitDone;
}

int Plan(const PlanArguments& arguments) {
  if (!arguments.published.empty()) return ShowPublished(arguments);
  if (arguments.request.job.job.empty()) {
    return ReportError(
        absl::InvalidArgumentError("plan needs a job file: siphon plan --config JOB.yaml"));
  }
  if (const absl::Status checked = CheckArguments(arguments); !checked.ok()) {
    return ReportError(checked);
  }
  const auto study = StudyAll(arguments);
  if (!study.ok()) return ReportError(study.status());
  const PlanReport& report = study->report;
  KeepForTrain(report.plan);
  absl::Status failed = study->refused;
  failed.Update(WriteFiles(arguments, report));
  const std::string text =
      arguments.format == OutputFormat::kJson ? PlanReportJson(report) : PlanReportText(report);
  std::fputs(text.c_str(), stdout);
  if (!failed.ok()) return ReportError(failed);
  return report.plan.step.has_value() ? kExitDone : kExitDoesNotFit;
}

std::string StrategiesText() {
  const std::string strategies = absl::StrJoin(
      MemoryStrategies(), "\n", [](std::string* text, const MemoryStrategy& strategy) {
        absl::StrAppend(text, "  ", strategy.name, ": ", strategy.help);
      });
  return absl::StrCat(strategies, "\n  ", kHarmonyStrategy, ": ", kHarmonyHelp);
}

void AddCosts(CLI::App* command, PlanRequest* request) {
  command
      ->add_option("--profile", request->profile,
                   "Costs of the job's layers, as siphon profile writes them; default: the job's "
                   "pipeline.profile")
      ->type_name("profile.yaml");
  command
      ->add_option("--device", request->device,
                   absl::StrCat("Without a profile: calculate the costs for this device, one of ",
                                absl::StrJoin(KnownDeviceSpecs(), ", "),
                                ", or a file of siphon profile --calibrate; default: the "
                                "topology's devices, or CPU cores as most are"))
      ->type_name("NAME|FILE")
      ->excludes("--profile");
}

}  // namespace

RunCommand AddPlanCommand(CLI::App& app) {
  const auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command =
      app.add_subcommand("plan", "Decide where tensors go so that a job's step fits into memory");
  AddJob(command, &arguments->request.job);
  command
      ->add_option("--strategy", arguments->request.strategy,
                   "In place of the job's memory.strategy; default: auto")
      ->type_name("NAME");
  AddCosts(command, &arguments->request);
  command->add_flag("--quick", arguments->request.quick,
                    "Plan within seconds, for a step that may be some percent longer: a short "
                    "search, as the largest jobs have it");
  command->add_option("--output", arguments->output, "Write the plan file, if the plan fits")
      ->type_name("plan.txt");
  command
      ->add_option("--report", arguments->page,
                   "Write the plan as a page for a browser: links with parked bytes, the step, "
                   "memory before and after")
      ->type_name("plan.html");
  command
      ->add_option(
          "--what-if,--what_if", arguments->what_ifs,
          "Plan once more with this setting, or with several at once, and show the plans side "
          "by side (repeatable); a comma begins the next setting where SECTION.KEY= follows: "
          "memory.capacity=24GB,pipeline.stages=4")
      ->allow_extra_args(false)
      ->option_text("KEY=VALUE[,KEY=VALUE...]");
  command->add_flag("--compare", arguments->compares,
                    absl::StrCat("Plan by every strategy, too, and show them in one table; on a "
                                 "server also what data-parallel systems would take there (",
                                 BaselineNames(), ")"));
  command->add_flag_callback(
      "--explain", [arguments] { arguments->detail = PlanDetail::kGroups; },
      "Show for each tensor group how long nobody needs it, what each way would cost, and why it "
      "goes where it goes; copies as if alone on their links, and hidden or exposed as they fit "
      "into the shortest time without a use in a step with everything kept");
  command
      ->add_option("--published", arguments->published,
                   "Our plans beside the tables and figures of MPress; needs no job")
      ->check(CLI::IsMember(PublishedSections()))
      ->type_name("SECTION");
  AddFormat(command, &arguments->format);
  command->footer(absl::StrCat(
      "Strategies:\n", StrategiesText(),
      "\n\nTouches no device: costs are calculated or from a profile. siphon simulate --plan shows "
      "the plan file's step.\nThe exit code is 3 where no plan of the strategy fits; the report "
      "then names the changes of the job that do. It speaks of the job as it is, not of a "
      "--what-if."));
  return [arguments] { return Plan(*arguments); };
}

}  // namespace siphon
