#include "planner/bounds/moments/moment_program.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "planner/bounds/moments/moment_columns.h"
#include "planner/bounds/moments/moment_snapshots.h"
#include "planner/bounds/windows/program_rows.h"

namespace siphon {
namespace {

constexpr double kLongest = ProgramRows::kLongest;

using Terms = LinearTerms;

Bytes UnitOf(const BoundFacts& facts) {
  Bytes most(1);
  for (const WorkerMemory& memory : facts.memory) {
    most = std::max(most, memory.parameters + memory.gradients + memory.optimizer_state);
  }
  return most;
}

class Builder {
 public:
  Builder(const BoundFacts& facts, const MomentFacts& moments)
      : facts_(facts),
        moments_(moments),
        made_{.unit = std::max(Nanos(1), facts.paths.step_time())},
        rows_(made_, UnitOf(facts)) {
    made_.step_time = made_.program.AddColumn(rows_.Time(facts.paths.step_time()), kLongest, 1);
  }

  WindowProgram Build() {
    for (int worker = 0; worker < Workers(); ++worker) {
      flows_.push_back(AddFlowColumns(facts_, moments_, worker, made_, rows_));
    }
    AddLinks();
    for (int worker = 0; worker < Workers(); ++worker) AddEnd(worker);
    for (int worker = 0; worker < Workers(); ++worker) AddStepsBehind(worker);
    AddBeginOfSteps();
    AddBetweenSteps();
    MomentSnapshots snapshots(facts_, moments_, flows_, ends_, made_, rows_);
    for (int worker = 0; worker < Workers(); ++worker) {
      AddSnapshots(worker, snapshots);
    }
    return std::move(made_);
  }

 private:
  int Last(int worker) const { return static_cast<int>(flows_[worker].time.size()) - 1; }
  int Workers() const { return static_cast<int>(facts_.memory.size()); }
  void Least(const Terms& terms, double least) { AddMerged(made_.program, terms, least); }

  void AddLinks() {
    for (const MomentLink& link : moments_.links) {
      const Moment& from = moments_.workers[link.from_worker].moments[link.from];
      const FlowColumns& flow = flows_[link.from_worker];
      Terms row{{flows_[link.to_worker].time[link.to], 1}, {flow.time[link.from], -1}};
      Append(row, flow.within[link.from], -1);
      Least(row, rows_.Time(from.duration + link.lag));
    }
    for (int worker = 0; worker < Workers(); ++worker) {
      Least({{made_.step_time, 1}, {flows_[worker].time.back(), -1}},
            rows_.Time(moments_.workers[worker].tail));
    }
  }

  void AddEnd(int worker) {
    StepTraffic& end = ends_.emplace_back();
    if (facts_.joint.steps_behind[worker].empty()) return;
    end.begin = made_.program.AddColumn(0, kLongest);
    const FlowColumns& flow = flows_[worker];
    for (int other = 0; other < Workers(); ++other) {
      const std::vector<int>& behind = facts_.joint.steps_behind[other];
      if (std::find(behind.begin(), behind.end(), worker) == behind.end()) continue;
      Least({{end.begin, 1}, {flows_[other].time.back(), -1}}, 0);
    }
    Least({{made_.step_time, 1}, {end.begin, -1}}, 0);
    Terms stay_out, stay_in;
    const Terms link_out = Moving(worker, flow.link, 0, stay_out);
    const Terms link_in = Moving(worker, flow.link, Last(worker), stay_in);
    end.host_out = Moving(worker, flow.host, 0, stay_out);
    end.state_in = Moving(worker, flow.host, Last(worker), stay_in);
    LimitStaying(worker, stay_out);
    LimitStaying(worker, stay_in);
    Carry({{made_.step_time, 1}, {flow.time.back(), -1}}, facts_.limits.link_in[worker], link_in);
    Carry({{made_.step_time, 1}, {end.begin, -1}}, facts_.limits.link_out[worker], link_out);
    if (!flow.host.open) return;
    AddHostStep(worker, end);
    Terms in = end.state_in;
    Append(in, end.host_in);
    const UplinkRates& uplink = facts_.limits.uplink[worker];
    rows_.AddUplink({{made_.step_time, 1}, {flow.time.back(), -1}}, uplink, end.host_out, in);
    rows_.AddUplink({{made_.step_time, 1}, {end.begin, -1}}, uplink, end.host_out, end.host_in);
  }

  // What is away over that way at the moment and moves between the worker's last action and the end
  // of the step: all that is away behind that action comes in for its step; all that is away as the
  // step begins, and so as it ends, leaves behind it, changed or used up. But weights of layers
  // that the host steps may stay where they are: these columns are added to `stay`.
  Terms Moving(int worker, const WayColumns& way, int moment, Terms& stay) {
    Terms moving;
    if (!way.open) return moving;
    if (!way.state.empty()) moving.push_back({way.state[moment], 1});
    Terms weights = WeightsAwayAt(way, moment);
    if (flows_[worker].stepped != FlowColumns::kNone) {
      const WorkerMemory& memory = facts_.memory[worker];
      stay.push_back({rows_.Part(memory.parameters + memory.gradients), -1});
      weights.push_back(stay.back());
      Least(weights, 0);
    }
    Append(moving, weights);
    return moving;
  }

  void LimitStaying(int worker, Terms stay) {
    const HostStep& step = facts_.host_steps[worker];
    const double most = step.most_parameters + step.most_gradients;
    if (stay.empty() || !std::isfinite(most)) return;
    stay.push_back({flows_[worker].stepped, most});
    Least(stay, 0);
  }

  // Gradients go out and parameters come in, but for what of them is with the host anyway.
  void AddHostStep(int worker, StepTraffic& end) {
    const FlowColumns& flow = flows_[worker];
    if (flow.stepped == FlowColumns::kNone) return;
    const HostStep& step = facts_.host_steps[worker];
    Terms gradients{{made_.program.AddColumn(0, kLongest), 1}};
    Terms parameters{{made_.program.AddColumn(0, kLongest), 1}};
    Append(end.host_out, gradients);
    Append(end.host_in, parameters);
    gradients.push_back({flow.stepped, -step.gradients});
    parameters.push_back({flow.stepped, -step.parameters});
    for (const StageWeights& weights : flow.host.weights) {
      gradients.push_back({weights.gradients.back(), 1});
      parameters.push_back({weights.parameters.front(), 1});
    }
    Least(gradients, 0);
    Least(parameters, 0);
  }

  void Carry(const Terms& time, BytesPerSecond rate, const Terms& bytes) {
    if (bytes.empty() || rate == kUnlimitedRate) return;
    Terms row;
    Append(row, time, rows_.Rate(rate));
    Append(row, bytes, -1);
    Least(row, 0);
  }

  // STEPs that cannot begin before the worker's last action has ended.
  void AddStepsBehind(int worker) {
    const std::vector<int>& behind = facts_.joint.steps_behind[worker];
    if (behind.empty()) return;
    const Terms time{{made_.step_time, 1}, {flows_[worker].time.back(), -1}};
    Terms steps = time;
    for (const int other : behind) {
      const int stepped = flows_[other].stepped;
      const double cost = rows_.TimeOfUnit(facts_.host_steps[other].time);
      if (stepped != FlowColumns::kNone) steps.push_back({stepped, -cost});
    }
    Least(steps, 0);
    for (const SharedUplinks& shared : facts_.limits.shared) {
      Terms out, in;
      for (const int other : behind) {
        if (!Shares(shared, other)) continue;
        Append(out, ends_[other].host_out);
        Append(in, ends_[other].host_in);
      }
      if (!out.empty() || !in.empty()) rows_.AddShared(time, shared, out, in);
    }
  }

  // Where no STEP begins before the last action of any worker: at the first of them devices hold
  // all weights and state, but for what is with the host. That comes in behind it, but for what the
  // host steps, and the weights for which it does.
  void AddBeginOfSteps() {
    Bytes room = facts_.limits.idle_memory;
    for (int worker = 0; worker < Workers(); ++worker) {
      const bool all = facts_.joint.steps_behind[worker].size() == facts_.memory.size();
      if (!all || facts_.memory[worker].spare == kUnlimitedBytes) return;
      if (room < kUnlimitedBytes) room += facts_.memory[worker].spare;
    }
    const int begin = made_.program.AddColumn(0, kLongest);
    const Terms time{{made_.step_time, 1}, {begin, -1}};
    Terms away;
    std::vector<Terms> in;  // [worker]
    for (int worker = 0; worker < Workers(); ++worker) {
      Least({{begin, 1}, {flows_[worker].time.back(), -1}}, 0);
      in.push_back(ends_[worker].host_in);
      AddAwayAtSteps(worker, away, in.back());
      rows_.AddUplink(time, facts_.limits.uplink[worker], ends_[worker].host_out, in.back());
    }
    Least(time, 0);
    if (room < Bytes(0)) Least(away, rows_.Size(Bytes(0) - room));
    for (const SharedUplinks& shared : facts_.limits.shared) {
      Terms all_out, all_in;
      for (int worker = 0; worker < Workers(); ++worker) {
        if (!Shares(shared, worker)) continue;
        Append(all_out, ends_[worker].host_out);
        Append(all_in, in[worker]);
      }
      rows_.AddShared(time, shared, all_out, all_in);
    }
  }

  // As a step begins, all devices together hold what of weights and state is not with the host.
  void AddBetweenSteps() {
    Bytes room = facts_.limits.idle_memory;
    Terms away;
    for (int worker = 0; worker < Workers(); ++worker) {
      const Bytes spare = facts_.memory[worker].spare;
      if (spare == kUnlimitedBytes || room >= kUnlimitedBytes) return;
      room += spare;
      const FlowColumns& flow = flows_[worker];
      if (flow.stepped != FlowColumns::kNone) away.push_back({flow.stepped, 1});
      if (!flow.host.state.empty()) away.push_back({flow.host.state.front(), 1});
      for (const StageWeights& weights : flow.host.weights) {
        away.push_back({weights.parameters.front(), 1});
        away.push_back({weights.gradients.front(), 1});
      }
    }
    if (room < Bytes(0)) Least(away, rows_.Size(Bytes(0) - room));
  }

  // As the worker's first and last backward begin.
  void AddSnapshots(int worker, MomentSnapshots& snapshots) const {
    int first = Last(worker);
    int last = 0;
    for (const MomentLife& life : moments_.workers[worker].lives) {
      first = std::min(first, life.backward);
      last = std::max(last, life.backward);
    }
    snapshots.Add(worker, first);
    if (last > first) snapshots.Add(worker, last);
  }

  void AddAwayAtSteps(int worker, Terms& away, Terms& in) {
    const FlowColumns& flow = flows_[worker];
    const WorkerMemory& memory = facts_.memory[worker];
    if (flow.stepped != FlowColumns::kNone) away.push_back({flow.stepped, 1});
    if (!flow.host.open) return;
    const LinearTerm state{rows_.Part(memory.optimizer_state), 1};
    away.push_back(state);
    in.push_back(state);
    const LinearTerm weights{rows_.Part(memory.parameters + memory.gradients), 1};
    away.push_back(weights);
    const HostStep& step = facts_.host_steps[worker];
    const double most = step.most_parameters + step.most_gradients;
    if (flow.stepped == FlowColumns::kNone) {
      in.push_back(weights);
    } else if (std::isfinite(most)) {
      const LinearTerm comes{rows_.Part(memory.parameters + memory.gradients), 1};
      in.push_back(comes);
      Least({comes, {weights.column, -1}, {flow.stepped, most}}, 0);
    }
  }

  const BoundFacts& facts_;
  const MomentFacts& moments_;
  WindowProgram made_;
  ProgramRows rows_;
  std::vector<FlowColumns> flows_;  // [worker]
  std::vector<StepTraffic> ends_;   // likewise
};

}  // namespace

WindowProgram BuildMomentProgram(const BoundFacts& facts, const MomentFacts& moments) {
  return Builder(facts, moments).Build();
}

}  // namespace siphon
