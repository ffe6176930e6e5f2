#include "launch/run/follow/replanner.h"

#include <chrono>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "launch/run/follow/replan.h"
#include "planner/marked_grid.h"
#include "planner/status.h"

namespace siphon {
namespace {

using Clock = std::chrono::steady_clock;

Nanos Since(Clock::time_point begin) {
  return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

// Of devices that several workers share no topology tells.
bool CanReplan(const PreparedJob& prepared) {
  const MemoryConfig& memory = prepared.job.memory;
  return !prepared.share_gpu && memory.replan && memory.plan.empty() &&
         !prepared.plan.memory.stages.empty();
}

}  // namespace

Replanner::Replanner(const PreparedJob& prepared, Coordinator& coordinator)
    : prepared_(prepared),
      coordinator_(coordinator),
      decides_(CanReplan(prepared)),
      measured_(static_cast<int>(prepared.plan.partition.stages.size())) {}

void Replanner::Note(const WorkerTimeline& timeline, Nanos step,
                     const std::vector<LinkState>& links) {
  if (decides_) measured_.Note(timeline, step, links);
  if (moved_) NoteEffect(step);
}

absl::StatusOr<std::optional<PlanText>> Replanner::Decide(const PlanFollower& follower,
                                                          int64_t steps) {
  if (!decides_ || !measured_.Complete()) return std::nullopt;
  decides_ = false;
  if (!follower.AsPlanned()) return std::nullopt;
  SIPHON_ASSIGN_OR_RETURN(const MeasuredRun measured, measured_.Gather(coordinator_));
  const bool plans = coordinator_.me().value == 0;
  const std::string mine = plans ? Plan(follower, measured) : "";
  if (plans) decision_ = absl::StrCat("after step ", steps, ": ", decision_);
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> texts, coordinator_.GatherText(mine));
  if (texts[0].empty()) {
    if (plans) notes_.push_back(decision_);
    return std::nullopt;
  }
  SIPHON_ASSIGN_OR_RETURN(PlanText plan, ParsePlanText(texts[0]));
  before_ = measured.step;
  predicted_ = plan.predicted.step_time;
  return plan;
}

// The plan's text; empty where the one in force stays.
std::string Replanner::Plan(const PlanFollower& follower, const MeasuredRun& measured) {
  const Clock::time_point begin = Clock::now();
  const absl::StatusOr<ReplanStudy> study = StudyReplan(prepared_, follower.plan(), measured);
  if (!study.ok()) {
    decision_ = absl::StrCat("the plan stays: ", SentenceOf(study.status()));
    return "";
  }
  decision_ = ReplanText(*study, measured.step, Since(begin));
  return study->plan.has_value() ? ToString(*study->plan) : "";
}

void Replanner::Moved(Nanos moving) {
  moved_ = true;
  if (coordinator_.me().value != 0) return;
  notes_.push_back(absl::StrCat(decision_, "; moving took ", FormatNanos(moving)));
}

void Replanner::NoteEffect(Nanos step) {
  if (since_.size() >= static_cast<size_t>(MeasuredSteps::kLastStep)) return;
  since_.push_back(step);
  if (since_.size() < static_cast<size_t>(MeasuredSteps::kLastStep)) return;
  if (coordinator_.me().value != 0) return;
  const std::vector<Nanos> counted(since_.begin() + MeasuredSteps::kFirstStep - 1, since_.end());
  notes_.push_back(absl::StrCat("re-planned, steps take ", FormatNanos(MedianOf(counted)),
                                " instead of ", FormatNanos(before_), ", predicted ",
                                FormatNanos(predicted_)));
}

}  // namespace siphon
