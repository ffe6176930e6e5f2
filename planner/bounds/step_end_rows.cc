#include "planner/bounds/step_end_rows.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

constexpr double kLongest = ProgramRows::kLongest;

}  // namespace

StepEndRows::StepEndRows(const BoundFacts& facts, const std::vector<StandingTerms>& standing,
                         WindowProgram& made, ProgramRows& rows)
    : facts_(facts),
      standing_(standing),
      made_(made),
      rows_(rows),
      steps_(facts.memory.size(), kNoStep) {}

void StepEndRows::AddWorker(const WindowedWorker& windowed, int last_segment,
                            const LinearTerms& last_recompute) {
  if (!windowed.step.open) return;
  const int worker = windowed.worker;
  LinearProgram& program = made_.program;
  const int before = program.AddColumn(rows_.Time(windowed.step.least), kLongest);
  const int step = steps_[worker] = program.AddColumn(0, kLongest);
  program.AddRow({{last_segment, 1}, {before, -1}, {step, -1}}, 0);
  LinearTerms own{{before, 1}};
  Append(own, last_recompute, -1);
  program.AddRow(std::move(own), rows_.Time(windowed.step.least_with_recompute),
                 rows_.Cause(absl::StrCat("recomputation on worker ", worker)));
  const StandingTerms& standing = standing_[worker];
  const int cause = rows_.Cause(absl::StrCat("the optimizer step of worker ", worker));
  rows_.AddCarried(step, facts_.limits.link_out[worker], standing.step_link_out, cause);
  rows_.AddUplinks(step, {facts_.limits.uplink[worker]}, standing.step_uplink_out,
                   standing.step_uplink_in, cause);
  AddHostTime(step, {worker}, cause);
}

void StepEndRows::AddJoint() {
  const int cause = rows_.Cause("the optimizer steps of all workers");
  for (const WindowedWorker& windowed : facts_.windowed) {
    if (!windowed.step.open || facts_.joint.steps_behind.empty()) continue;
    AddStepsWithin(steps_[windowed.worker], facts_.joint.steps_behind[windowed.worker], cause);
    std::vector<int> later;
    for (const WindowedWorker& other : facts_.windowed) {
      const bool behind = other.step.open && other.step.head >= windowed.step.head;
      if (behind) later.push_back(other.worker);
    }
    const int time = made_.program.AddColumn(0, kLongest);
    made_.program.AddRow({{made_.step_time, 1}, {time, -1}}, rows_.Time(windowed.step.head));
    AddStepsWithin(time, later, cause);
  }
}

void StepEndRows::AddHostTime(int time, const std::vector<int>& workers, int cause) {
  LinearTerms row{{time, 1}};
  for (const int worker : workers) Append(row, standing_[worker].step_on_host, -1);
  if (row.size() > 1) made_.program.AddRow(std::move(row), 0, cause);
}

void StepEndRows::AddStepsWithin(int time, const std::vector<int>& workers, int cause) {
  if (workers.size() < 2) return;
  AddHostTime(time, workers, cause);
  for (const SharedUplinks& shared : facts_.limits.shared) {
    LinearTerms out;
    LinearTerms in;
    for (const int worker : workers) {
      if (!Shares(shared, worker)) continue;
      Append(out, standing_[worker].step_uplink_out);
      Append(in, standing_[worker].step_uplink_in);
    }
    rows_.AddUplinks(time, shared.uplinks, out, in, cause);
  }
}

}  // namespace siphon
