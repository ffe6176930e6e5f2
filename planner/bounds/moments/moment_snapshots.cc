#include "planner/bounds/moments/moment_snapshots.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace siphon {
namespace {

LinearTerms Difference(const LinearTerms& more, const LinearTerms& less) {
  LinearTerms difference = more;
  Append(difference, less, -1);
  return difference;
}

// What has moved of weights by a moment.
LinearTerms WeightsOut(const WayColumns& way, int moment) {
  LinearTerms out;
  for (const StageWeights& weights : way.weights) out.push_back({weights.out[moment], 1});
  return out;
}
LinearTerms WeightsIn(const WayColumns& way, int moment) {
  LinearTerms in;
  for (const StageWeights& weights : way.weights) in.push_back({weights.in[moment], 1});
  return in;
}
}  // namespace

MomentSnapshots::MomentSnapshots(const BoundFacts& facts, const MomentFacts& moments,
                                 const std::vector<FlowColumns>& flows,
                                 const std::vector<StepTraffic>& ends, WindowProgram& made,
                                 ProgramRows& rows)
    : facts_(facts), moments_(moments), flows_(flows), ends_(ends), made_(made), rows_(rows) {}

void MomentSnapshots::Add(int worker, int moment) {
  const std::vector<MomentRange> seen = moments_.Seen(facts_, worker, moment);
  const LinearTerm begin{flows_[worker].time[moment], 1};
  std::vector<Snapshot> all;
  for (int other = 0; other < static_cast<int>(flows_.size()); ++other) {
    all.push_back(other == worker ? Own(worker, moment) : Other(other, seen[other], begin));
  }
  AddShared(worker, begin, all);
  AddMemory(all);
}

LinearTerm MomentSnapshots::Between(const LinearTerms& least, const LinearTerms& most) {
  const LinearTerm column = AtMost(most);
  Least(Difference({column}, least), 0);
  return column;
}

LinearTerm MomentSnapshots::AtMost(const LinearTerms& most) {
  double upper = 0;
  for (const LinearTerm& term : most) {
    if (term.coefficient > 0) upper += made_.program.columns[term.column].upper;
  }
  const LinearTerm column{made_.program.AddColumn(0, upper), 1};
  Least(Difference(most, {column}), 0);
  return column;
}

MomentSnapshots::Snapshot MomentSnapshots::Own(int worker, int moment) const {
  const FlowColumns& flow = flows_[worker];
  const WayColumns& host = flow.host;
  const int last = static_cast<int>(flow.time.size()) - 1;
  Snapshot own{.out = AllOut(host, moment), .in = AllIn(host, moment), .has_memory = true};
  own.out_rest = Difference(AllOut(host, last), own.out);
  own.in_rest = Difference(AllIn(host, last), own.in);
  Append(own.in_rest, ends_[worker].state_in);
  own.away = flow.gone[moment];
  if (flow.stepped != FlowColumns::kNone) own.away.push_back({flow.stepped, 1});
  if (host.open) {
    own.away.push_back({host.away[moment], 1});
    if (!host.state.empty()) own.away.push_back({host.state[moment], 1});
    Append(own.away, WeightsAwayAt(host, moment));
  }
  const Moment& at = moments_.workers[worker].moments[moment];
  own.live = at.live + at.fixed;
  return own;
}

MomentSnapshots::Snapshot MomentSnapshots::Other(int worker, const MomentRange& range,
                                                 LinearTerm begin) {
  const FlowColumns& flow = flows_[worker];
  const WayColumns& host = flow.host;
  if (range.behind == MomentRange::kNone) {
    return {.out = AllOut(host, range.before), .in = AllIn(host, range.before)};
  }
  Snapshot then{.has_memory = true};
  if (flow.stepped != FlowColumns::kNone) then.away.push_back({flow.stepped, 1});
  AddActivations(worker, range, then);
  if (!host.open) return then;
  if (!host.state.empty()) AddState(worker, range, then);
  if (!host.weights.empty()) AddWeights(worker, range, then);
  AddRates(worker, range, begin, then);
  return then;
}

void MomentSnapshots::AddActivations(int worker, const MomentRange& range, Snapshot& then) {
  const FlowColumns& flow = flows_[worker];
  const WayColumns& host = flow.host;
  LinearTerms sent;
  const WorkerMoments& own = moments_.workers[worker];
  for (size_t life = 0; life < own.lives.size(); ++life) {
    const MomentLife& of = own.lives[life];
    if (of.forward > range.before || of.backward < range.behind) continue;
    for (const LinearTerm& term : flow.dropped[life]) {
      if (term.coefficient != 0) then.away.push_back(term);
    }
    if (host.open) sent.push_back({host.sent[life], 1});
    then.live += StashOf(worker, of.stage);
  }
  if (!host.open) return;
  const LinearTerm left = Between({{host.out[range.before], 1}}, {{host.out[range.behind], 1}});
  const LinearTerm back = Between({{host.in[range.before], 1}}, {{host.in[range.behind], 1}});
  const LinearTerm away = AtMost(sent);
  Least(Difference({left}, {back, away}), 0);
  then.away.push_back(away);
  then.out.push_back(left);
  then.in.push_back(back);
}

void MomentSnapshots::AddState(int worker, const MomentRange& range, Snapshot& then) {
  const FlowColumns& flow = flows_[worker];
  const WayColumns& host = flow.host;
  const LinearTerm left = Between(StateOut(host, range.before), StateOut(host, range.behind));
  const LinearTerm back =
      Between({{host.state_in[range.before], 1}}, {{host.state_in[range.behind], 1}});
  LinearTerms state = Difference({left, {host.state[0], 1}}, {back});
  Append(then.away, state);
  if (flow.stepped != FlowColumns::kNone) state.push_back({flow.stepped, 1});
  rows_.AddAtMost(state, rows_.Size(facts_.memory[worker].optimizer_state));
  then.out.push_back(left);
  then.in.push_back(back);
}

// Of what has left since the moment before nothing is counted.
void MomentSnapshots::AddWeights(int worker, const MomentRange& range, Snapshot& then) {
  const WayColumns& host = flows_[worker].host;
  const LinearTerm back = Between(WeightsIn(host, range.before), WeightsIn(host, range.behind));
  LinearTerms most = WeightsAwayAt(host, range.behind);
  Append(most, Difference(WeightsIn(host, range.behind), {back}));
  const WorkerMemory& memory = facts_.memory[worker];
  const LinearTerm away{rows_.Part(memory.parameters + memory.gradients), 1};
  Least(Difference(most, {away}), 0);
  then.away.push_back(away);
  then.in.push_back(back);
  Append(then.out, WeightsOut(host, range.before));
}

void MomentSnapshots::AddRates(int worker, const MomentRange& range, LinearTerm begin,
                               Snapshot& then) {
  const FlowColumns& flow = flows_[worker];
  const WayColumns& host = flow.host;
  const LinearTerms weights =
      Difference(WeightsOut(host, range.behind), WeightsOut(host, range.before));
  const auto from_then_to = [&](int moment, LinearTerms& out, LinearTerms& in) {
    out = Difference(Difference(AllOut(host, moment), then.out), weights);
    in = Difference(AllIn(host, moment), then.in);
  };
  const UplinkRates& uplink = facts_.limits.uplink[worker];
  rows_.AddUplink({begin, {flow.time[range.before], -1}}, uplink,
                  Difference(then.out, AllOut(host, range.before)),
                  Difference(then.in, AllIn(host, range.before)));
  LinearTerms out, in;
  from_then_to(range.behind, out, in);
  rows_.AddUplink({{flow.time[range.behind], 1}, {begin.column, -1}}, uplink, out, in);
  const int last = static_cast<int>(flow.time.size()) - 1;
  from_then_to(last, then.out_rest, then.in_rest);
  Append(then.in_rest, ends_[worker].state_in);
}

void MomentSnapshots::AddShared(int worker, LinearTerm begin, const std::vector<Snapshot>& all) {
  const std::vector<int>& steps = facts_.joint.steps_behind[worker];
  for (const SharedUplinks& shared : facts_.limits.shared) {
    LinearTerms before_out, before_in, behind_out, behind_in;
    for (int other = 0; other < static_cast<int>(all.size()); ++other) {
      if (!Shares(shared, other)) continue;
      Append(before_out, all[other].out);
      Append(before_in, all[other].in);
      Append(behind_out, all[other].out_rest);
      Append(behind_in, all[other].in_rest);
      if (std::find(steps.begin(), steps.end(), other) == steps.end()) continue;
      Append(behind_out, ends_[other].host_out);
      Append(behind_in, ends_[other].host_in);
    }
    rows_.AddShared({begin}, shared, before_out, before_in);
    rows_.AddShared({{made_.step_time, 1}, {begin.column, -1}}, shared, behind_out, behind_in);
  }
}

void MomentSnapshots::AddMemory(const std::vector<Snapshot>& all) {
  Bytes room = facts_.limits.idle_memory;
  if (room >= kUnlimitedBytes) return;
  Bytes live;
  LinearTerms away;
  for (size_t worker = 0; worker < all.size(); ++worker) {
    const WorkerMemory& memory = facts_.memory[worker];
    if (memory.spare == kUnlimitedBytes) return;
    room += memory.spare;
    if (!all[worker].has_memory) {
      room += memory.parameters + memory.gradients + memory.optimizer_state;
      continue;
    }
    live += all[worker].live;
    Append(away, all[worker].away);
  }
  if (live > room) Least(away, rows_.Size(live - room));
}

Bytes MomentSnapshots::StashOf(int worker, int stage) const {
  Bytes stash;
  const WorkerMemory& memory = facts_.memory[worker];
  for (const LayerKind& kind : memory.layers) {
    if (kind.stage == memory.stages[stage]) stash += kind.stash * kind.layers;
  }
  return stash;
}

}  // namespace siphon
