#include "planner/plan_text.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan_file/job_text.h"
#include "planner/plan_file/plan_keys.h"
#include "planner/plan_file/plan_units.h"
#include "planner/plan_file/stage_text.h"
#include "planner/plan_file/topology_text.h"
#include "planner/plan_file/worker_text.h"

namespace siphon {
namespace {

// A section of which there is nothing to say is left out.
void AppendSection(std::string& text, absl::string_view header, absl::string_view lines) {
  if (!lines.empty()) absl::StrAppend(&text, "\n", header, "\n", lines);
}

std::string ProgramTexts(const Schedule& schedule) {
  std::string text;
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    absl::StrAppend(&text, "  worker ", worker, ": ",
                    absl::StrJoin(CellTexts(schedule.programs[worker]), " "), "\n");
  }
  return text;
}

// Of this worker in each replica.
std::vector<DeviceId> DevicesOf(const PlanText& plan, size_t worker) {
  std::vector<DeviceId> devices;
  const std::vector<DeviceId>& all = plan.mapping.device_of_worker;
  for (size_t index = worker; index < all.size(); index += plan.workers.size()) {
    devices.push_back(all[index]);
  }
  return devices;
}

std::string SharedLines(const std::vector<PlanSharing>& shared_parameters) {
  const auto append_stage = [](std::string* out, StageId stage) {
    absl::StrAppend(out, stage.value);
  };
  std::string text;
  for (const PlanSharing& shared : shared_parameters) {
    absl::StrAppend(&text, "  ", shared.parameter, ": ",
                    absl::StrJoin(shared.stages, ", ", append_stage), "\n");
  }
  return text;
}

}  // namespace

std::string NameForPlan(absl::string_view name) {
  std::string plain(absl::StripAsciiWhitespace(name));
  const auto ends_name = [](char c) { return c == '#' || c == '\n' || c == '\r'; };
  std::replace_if(plain.begin(), plain.end(), ends_name, '_');
  return plain;
}

std::string ToString(const PlanText& plan) {
  std::string text = absl::StrCat(
      kFirstLine,
      "\n# Read by siphon simulate --plan FILE. What stands behind a # is a comment.\n");
  if (plan.costs == kUnitCosts) {
    absl::StrAppend(&text, "# Nothing was measured or calculated: F, I and W take ",
                    ExactText(kUnitTime), " each, B both.\n");
  }
  AppendSection(text, kJobSection, JobLines(plan));
  AppendSection(text, kPredictedSection, PredictedLines(plan.predicted));
  if (plan.topology != Topology{}) {
    AppendSection(text, kTopologySection, TopologyLines(plan.topology));
  }
  for (size_t worker = 0; worker < plan.workers.size(); ++worker) {
    AppendSection(text, absl::StrCat(kWorkerSection, " ", worker),
                  LinesOfWorker(plan.workers[worker], DevicesOf(plan, worker)));
  }
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const StagePlan memory = plan.memory.stages.empty() ? StagePlan() : plan.memory.stages[stage];
    AppendSection(text, absl::StrCat(kStageSection, " ", stage),
                  LinesOfStage(plan.stages[stage], memory));
  }
  AppendSection(text, kSharedSection, SharedLines(plan.shared_parameters));
  AppendSection(text, kTrainingSection, ProgramTexts(plan.training));
  AppendSection(text, kEvaluationSection, ProgramTexts(plan.evaluation));
  return text;
}

}  // namespace siphon
