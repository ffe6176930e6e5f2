#include "planner/bounds/moment_program.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "planner/bounds/moment_columns.h"
#include "planner/bounds/program_rows.h"

namespace siphon {
namespace {

constexpr double kLongest = ProgramRows::kLongest;
// Of each worker, at which all workers are looked at together.
constexpr size_t kMostJointMoments = 8;

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
    for (int worker = 0; worker < Workers(); ++worker) {
      for (const int moment : JointMoments(worker)) AddJoint(worker, moment);
    }
    return std::move(made_);
  }

 private:
  int Workers() const { return static_cast<int>(facts_.memory.size()); }
  int Last(int worker) const { return static_cast<int>(flows_[worker].time.size()) - 1; }
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

  // What the host's step of a worker moves, and what its own step does.
  struct StepEnd {
    int begin = FlowColumns::kNone;  // of its first STEP; none where it has none
    Terms host_out, host_in;         // behind that begin
    Terms state_in;                  // over the uplink, behind its last action
  };

  void AddEnd(int worker) {
    StepEnd& end = ends_.emplace_back();
    if (facts_.joint.steps_behind[worker].empty()) return;
    end.begin = made_.program.AddColumn(0, kLongest);
    const FlowColumns& flow = flows_[worker];
    for (int other = 0; other < Workers(); ++other) {
      const std::vector<int>& behind = facts_.joint.steps_behind[other];
      if (std::find(behind.begin(), behind.end(), worker) == behind.end()) continue;
      Least({{end.begin, 1}, {flows_[other].time.back(), -1}}, 0);
    }
    Least({{made_.step_time, 1}, {end.begin, -1}}, 0);
    const bool host_steps = flow.stepped != FlowColumns::kNone;
    Carry({{made_.step_time, 1}, {flow.time.back(), -1}}, facts_.limits.link_in[worker],
          ComingIn(worker, flow.link));
    Carry({{made_.step_time, 1}, {end.begin, -1}}, facts_.limits.link_out[worker],
          Leaving(flow.link, host_steps));
    if (!flow.host.open) return;
    end.state_in = ComingIn(worker, flow.host);
    end.host_out = Leaving(flow.host, host_steps);
    AddHostStep(worker, end);
    Terms in = end.state_in;
    Append(in, end.host_in);
    const UplinkRates& uplink = facts_.limits.uplink[worker];
    rows_.AddUplink({{made_.step_time, 1}, {flow.time.back(), -1}}, uplink, end.host_out, in);
    rows_.AddUplink({{made_.step_time, 1}, {end.begin, -1}}, uplink, end.host_out, end.host_in);
  }

  // Behind a worker's last action: state, parameters and gradients, but for those two where the
  // host may step with them.
  Terms ComingIn(int worker, const WayColumns& way) const {
    Terms in;
    if (!way.state.empty()) in.push_back({way.state.back(), 1});
    if (flows_[worker].stepped != FlowColumns::kNone) return in;
    for (const StageWeights& weights : way.weights) {
      in.push_back({weights.parameters.back(), 1});
      in.push_back({weights.gradients.back(), 1});
    }
    return in;
  }

  // Behind the begin of its step: what that has changed and is away between steps. Parameters that
  // the host may have made need not leave.
  static Terms Leaving(const WayColumns& way, bool host_steps) {
    Terms out;
    if (!way.state.empty()) out.push_back({way.state.front(), 1});
    if (host_steps) return out;
    for (const StageWeights& weights : way.weights) out.push_back({weights.parameters.front(), 1});
    return out;
  }

  // Gradients go out and parameters come in, but for what of them is with the host anyway.
  void AddHostStep(int worker, StepEnd& end) {
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

  // A column of at most the sum.
  int TimeOf(const Terms& sum) {
    const int time = made_.program.AddColumn(0, kLongest);
    Terms row = sum;
    row.push_back({time, -1});
    Least(row, 0);
    return time;
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
      if (!out.empty() || !in.empty()) AddShared(time, shared, out, in);
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
      AddShared(time, shared, all_out, all_in);
    }
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

  void AddShared(const Terms& time, const SharedUplinks& shared, const Terms& out,
                 const Terms& in) {
    if (out.empty() && in.empty()) return;
    if (shared.uplinks.size() == 1) {
      rows_.AddUplink(time, shared.uplinks.front(), out, in);
    } else {
      rows_.AddUplinks(TimeOf(time), shared.uplinks, out, in, -1);
    }
  }

  // Some of the worker's backwards, the first and the last among them.
  std::vector<int> JointMoments(int worker) const {
    const std::vector<MomentLife>& lives = moments_.workers[worker].lives;
    std::vector<int> backwards;
    for (const MomentLife& life : lives) backwards.push_back(life.backward);
    std::sort(backwards.begin(), backwards.end());
    if (backwards.size() <= kMostJointMoments) return backwards;
    std::vector<int> chosen;
    for (size_t index = 0; index < kMostJointMoments; ++index) {
      chosen.push_back(backwards[index * (backwards.size() - 1) / (kMostJointMoments - 1)]);
    }
    return chosen;
  }

  void AddJoint(int worker, int moment) {
    const std::vector<MomentRange> seen = moments_.Seen(facts_, worker, moment);
    const LinearTerm begin{flows_[worker].time[moment], 1};
    for (const SharedUplinks& shared : facts_.limits.shared) {
      Terms before_out, before_in, behind_out, behind_in;
      for (int other = 0; other < Workers(); ++other) {
        if (!Shares(shared, other)) continue;
        AddMovedBefore(other, seen[other].before, before_out, before_in);
        AddMovedBehind(other, seen[other].behind, behind_out, behind_in);
        const std::vector<int>& steps = facts_.joint.steps_behind[worker];
        if (std::find(steps.begin(), steps.end(), other) == steps.end()) continue;
        Append(behind_out, ends_[other].host_out);
        Append(behind_in, ends_[other].host_in);
      }
      AddShared({begin}, shared, before_out, before_in);
      AddShared({{made_.step_time, 1}, {begin.column, -1}}, shared, behind_out, behind_in);
    }
    AddMemory(seen);
  }

  void AddMovedBefore(int worker, int moment, Terms& out, Terms& in) const {
    if (moment == 0) return;
    Append(out, AllOut(flows_[worker].host, moment));
    Append(in, AllIn(flows_[worker].host, moment));
  }

  void AddMovedBehind(int worker, int moment, Terms& out, Terms& in) const {
    const WayColumns& host = flows_[worker].host;
    if (moment == MomentRange::kNone) return;
    Append(out, AllOut(host, Last(worker)));
    Append(out, AllOut(host, moment), -1);
    Append(in, AllIn(host, Last(worker)));
    Append(in, AllIn(host, moment), -1);
    Append(in, ends_[worker].state_in);
  }

  // Whatever is not with the host, nor dropped, is on some device. What of a worker's state is with
  // the host at a time between two of its moments comes in before the second one, or is still there
  // then; so do weights that are away.
  void AddMemory(const std::vector<MomentRange>& seen) {
    Bytes room = facts_.limits.idle_memory;
    if (room >= kUnlimitedBytes) return;
    Bytes live;
    Terms away;
    for (int worker = 0; worker < Workers(); ++worker) {
      if (facts_.memory[worker].spare == kUnlimitedBytes) return;
      room += facts_.memory[worker].spare;
      const auto [before, behind] = seen[worker];
      if (behind == MomentRange::kNone) {
        const WorkerMemory& memory = facts_.memory[worker];
        room += memory.parameters + memory.gradients + memory.optimizer_state;
        continue;
      }
      AddStandingAway(worker, before, behind, away);
      live += AddLive(worker, before, behind, away);
    }
    if (live > room) Least(away, rows_.Size(live - room));
  }

  void AddStandingAway(int worker, int before, int behind, Terms& away) const {
    const FlowColumns& flow = flows_[worker];
    if (flow.stepped != FlowColumns::kNone) away.push_back({flow.stepped, 1});
    if (!flow.host.state.empty()) {
      away.push_back({flow.host.state[behind], 1});
      away.push_back({flow.host.state_in[behind], 1});
      away.push_back({flow.host.state_in[before], -1});
    }
    for (const StageWeights& weights : flow.host.weights) {
      away.push_back({weights.parameters[behind], 1});
      away.push_back({weights.gradients[behind], 1});
      away.push_back({weights.in[behind], 1});
      away.push_back({weights.in[before], -1});
    }
  }

  // Of microbatches whose forward has ended for certain and whose backward cannot have begun.
  Bytes AddLive(int worker, int before, int behind, Terms& away) const {
    const FlowColumns& flow = flows_[worker];
    const WorkerMoments& own = moments_.workers[worker];
    const bool exact = before == behind;
    Bytes live = exact ? own.moments[before].fixed : Bytes(0);
    for (size_t life = 0; life < own.lives.size(); ++life) {
      const MomentLife& of = own.lives[life];
      const bool ended = exact ? of.forward < before : of.forward <= before;
      if (!ended || of.backward < behind) continue;
      for (const LinearTerm& term : flow.dropped[life]) {
        if (term.coefficient != 0) away.push_back(term);
      }
      if (flow.host.open) away.push_back({flow.host.sent[life], 1});
      live += StashOf(worker, of.stage);
    }
    return live;
  }

  Bytes StashOf(int worker, int stage) const {
    Bytes stash;
    const WorkerMemory& memory = facts_.memory[worker];
    for (const LayerKind& kind : memory.layers) {
      if (kind.stage == memory.stages[stage]) stash += kind.stash * kind.layers;
    }
    return stash;
  }

  const BoundFacts& facts_;
  const MomentFacts& moments_;
  WindowProgram made_;
  ProgramRows rows_;
  std::vector<FlowColumns> flows_;  // [worker]
  std::vector<StepEnd> ends_;       // likewise
};

}  // namespace

WindowProgram BuildMomentProgram(const BoundFacts& facts, const MomentFacts& moments) {
  return Builder(facts, moments).Build();
}

}  // namespace siphon
