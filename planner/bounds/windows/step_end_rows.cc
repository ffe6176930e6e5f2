#include "planner/bounds/windows/step_end_rows.h"

#include <cmath>
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
      begins_(facts.memory.size()),
      steps_(facts.memory.size(), kNoStep) {}

void StepEndRows::AddWorker(const WindowedWorker& windowed, int last_segment,
                            const LinearTerms& last_recompute) {
  if (!windowed.step.open) return;
  const int worker = windowed.worker;
  LinearProgram& program = made_.program;
  const int before = program.AddColumn(rows_.Time(windowed.step.least), kLongest);
  const int step = steps_[worker] = program.AddColumn(0, kLongest);
  program.AddRow({{last_segment, 1}, {before, -1}, {step, -1}}, 0);
  program.AddRow({{made_.step_time, 1}, {step, -1}}, rows_.Time(windowed.step.head));
  LinearTerms own{{before, 1}};
  Append(own, last_recompute, -1);
  program.AddRow(std::move(own), rows_.Time(windowed.step.least_with_recompute),
                 rows_.Cause(absl::StrCat("recomputation on worker ", worker)));
  AddBegin(worker);
  const StandingTerms& standing = standing_[worker];
  const Begin& begin = begins_[worker];
  const int cause = rows_.Cause(absl::StrCat("the optimizer step of worker ", worker));
  rows_.AddCarried(step, facts_.limits.link_out[worker], standing.step_link_out, cause);
  rows_.AddCarried(step, facts_.limits.link_in[worker], begin.link_in, cause);
  LinearTerms uplink_in = standing.step_uplink_in;
  Append(uplink_in, begin.uplink_in);
  rows_.AddUplinks(step, {facts_.limits.uplink[worker]}, standing.step_uplink_out, uplink_in,
                   cause);
  AddHostTime(step, {worker}, cause);
}

void StepEndRows::AddBegin(int worker) {
  const StandingTerms& standing = standing_[worker];
  const SwapWays ways = WaysOf(facts_, worker);
  LinearProgram& program = made_.program;
  Begin& begin = begins_[worker];
  const auto add = [&](const LinearTerm& term, bool link) {
    const int column = program.AddColumn(0, program.columns[term.column].upper);
    program.AddRow({{term.column, 1}, {column, -1}}, 0);
    begin.away.push_back({column, 1});
    if (!link) begin.host.push_back({column, 1});
    return LinearTerm{column, 1};
  };
  for (const LinearTerm& term : standing.state) {
    const bool link = term.column == standing.state_link;
    const LinearTerm away = add(term, link);
    if (term.column != standing.stepped) (link ? begin.link_in : begin.uplink_in).push_back(away);
  }
  const HostStep& host = facts_.host_steps[worker];
  for (const LinearTerms* kind : {&standing.parameters, &standing.gradients}) {
    LinearTerms away;
    for (const LinearTerm& term : *kind) {
      away.push_back(add(term, ways.links && &term == &kind->front()));
    }
    const double most = kind == &standing.parameters ? host.most_parameters : host.most_gradients;
    const LinearTerms in = ComingIn(away, most, standing.stepped);
    for (size_t way = 0; way < in.size(); ++way) {
      (ways.links && way == 0 ? begin.link_in : begin.uplink_in).push_back(in[way]);
    }
  }
  const Bytes spare = facts_.memory[worker].spare;
  if (spare < Bytes(0)) program.AddRow(begin.away, rows_.Size(Bytes(0) - spare));
}

LinearTerms StepEndRows::ComingIn(const LinearTerms& away, double most, int stepped) {
  if (away.empty() || stepped == StandingTerms::kNone) return away;
  if (!std::isfinite(most)) return {};
  LinearTerms in;
  LinearTerms row{{stepped, most}};
  LinearProgram& program = made_.program;
  for (const LinearTerm& term : away) {
    const double upper = program.columns[term.column].upper;
    in.push_back({program.AddColumn(0, upper), 1});
    row.push_back({program.AddColumn(0, upper), -1});  // stays
    program.AddRow({{in.back().column, 1}, {row.back().column, 1}, {term.column, -1}}, 0);
  }
  program.AddRow(std::move(row), 0);
  return in;
}

void StepEndRows::AddBeginOfAll() {
  Bytes room = facts_.limits.idle_memory;
  if (facts_.joint.steps_behind.empty() || room >= kUnlimitedBytes) return;
  LinearTerms host;
  for (size_t worker = 0; worker < facts_.memory.size(); ++worker) {
    const Bytes spare = facts_.memory[worker].spare;
    const bool together = facts_.joint.steps_behind[worker].size() == facts_.memory.size();
    if (!together || spare == kUnlimitedBytes) return;
    room += spare;
    if (steps_[worker] != kNoStep) {
      Append(host, begins_[worker].host);
      continue;
    }
    const StandingTerms& standing = standing_[worker];
    const SwapWays ways = WaysOf(facts_, static_cast<int>(worker));
    Append(host, WeightsEverAway(standing, ways).host);
    for (const LinearTerm& term : standing.state) {
      if (term.column != standing.state_link) host.push_back(term);
    }
  }
  if (room < Bytes(0)) made_.program.AddRow(std::move(host), rows_.Size(Bytes(0) - room));
}

void StepEndRows::AddBetweenSteps() {
  Bytes room = facts_.limits.idle_memory;
  if (facts_.replicas > 1 || facts_.updates_within) return;
  LinearTerms host;
  for (size_t worker = 0; worker < facts_.memory.size(); ++worker) {
    const Bytes spare = facts_.memory[worker].spare;
    if (room >= kUnlimitedBytes || spare == kUnlimitedBytes) return;
    room += spare;
    const StandingTerms& standing = standing_[worker];
    Append(host, WeightsEverAway(standing, WaysOf(facts_, static_cast<int>(worker))).host);
    for (const LinearTerm& term : standing.state) {
      if (term.column != standing.state_link) host.push_back(term);
    }
    if (standing.home_uplink != StandingTerms::kNone) host.push_back({standing.home_uplink, -1});
  }
  if (room < Bytes(0)) made_.program.AddRow(std::move(host), rows_.Size(Bytes(0) - room));
}

void StepEndRows::AddJoint() {
  AddBeginOfAll();
  AddBetweenSteps();
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
      Append(in, begins_[worker].uplink_in);
    }
    rows_.AddUplinks(time, shared.uplinks, out, in, cause);
  }
}

}  // namespace siphon
