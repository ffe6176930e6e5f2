#include "planner/bounds/windows/full_moment_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

class MomentRows {
 public:
  MomentRows(const BoundFacts& facts, const FullMoment& moment, const MomentColumns& columns,
             const std::vector<StandingTerms>& standing, WindowProgram& made, ProgramRows& rows)
      : facts_(facts),
        moment_(moment),
        columns_(columns),
        standing_(standing),
        made_(made),
        rows_(rows),
        before_(made.program.AddColumn(0, ProgramRows::kLongest)),
        behind_(made.program.AddColumn(0, ProgramRows::kLongest)) {
    LinearTerms before{{made.step_time, 1}, {before_, -1}};
    LinearTerms behind{{behind_, -1}};
    for (const int segment : columns.segments_behind) {
      before.push_back({segment, -1});
      behind.push_back({segment, 1});
    }
    made.program.AddRow(std::move(before), 0);
    made.program.AddRow(std::move(behind), 0);
  }

  void Add() {
    for (const LiveThen& other : moment_.others) {
      terms_.push_back(AddColumns(other));
      weights_.push_back(AddWeights(other));
      if (other.stash > Bytes(0)) AddTimes(other, terms_.back(), weights_.back());
      AddCover(other, terms_.back(), weights_.back());
    }
    for (const SharedUplinks& shared : facts_.limits.shared) {
      if (shared.workers.size() > 1) AddShared(shared);
    }
    AddAllMemory();
  }

 private:
  WindowTerms AddColumns(const LiveThen& then) {
    WindowTerms terms;
    const WorkerMemory& memory = facts_.memory[then.worker];
    for (const LayerKind& kind : memory.layers) {
      const int64_t count = int64_t{then.live[PlaceOf(memory, kind.stage)]} * kind.layers;
      if (count == 0) continue;
      const int column = rows_.Part(kind.stash * count);
      terms.dropped.push_back({column, 1});
      terms.recompute.push_back({column, rows_.Time(kind.recompute) / rows_.Size(kind.stash)});
    }
    const SwapWays ways = WaysOf(facts_, then.worker);
    if (ways.links) terms.link.push_back({rows_.Part(then.stash), 1});
    if (ways.host) terms.uplink.push_back({rows_.Part(then.stash), 1});
    LinearTerms all = terms.dropped;
    Append(all, terms.link);
    Append(all, terms.uplink);
    rows_.AddAtMost(all, rows_.Size(then.stash));
    return terms;
  }

  WeightsAway AddWeights(const LiveThen& then) {
    const StandingTerms& standing = standing_[then.worker];
    const bool uses_all =
        !facts_.updates_within && std::all_of(then.live.begin(), then.live.end(),
                                              [](int microbatches) { return microbatches > 0; });
    const SwapWays ways = WaysOf(facts_, then.worker);
    return uses_all ? AddWeightsAway(standing, ways, made_) : WeightsEverAway(standing, ways);
  }

  // A column of at most what `whole` has beyond `least`.
  int Less(int whole, Nanos least) {
    const int column = made_.program.AddColumn(0, ProgramRows::kLongest);
    made_.program.AddRow({{whole, 1}, {column, -1}}, rows_.Time(least));
    return column;
  }

  void AddTimes(const LiveThen& then, const WindowTerms& terms, const WeightsAway& weights) {
    LinearTerms own{{behind_, 1}};
    Append(own, terms.recompute, -1);
    made_.program.AddRow(std::move(own), rows_.Time(then.rest),
                         rows_.Cause(absl::StrCat("recomputation on worker ", then.worker)));
    const int out = Less(before_, then.head);
    const int in = Less(behind_, then.tail);
    LinearTerms link_in = terms.link;
    LinearTerms uplink_in = terms.uplink;
    Append(link_in, weights.link_in);
    Append(uplink_in, weights.uplink_in);
    const int links = rows_.Cause(absl::StrCat("links of worker ", then.worker));
    rows_.AddCarried(out, facts_.limits.link_out[then.worker], terms.link, links);
    rows_.AddCarried(in, facts_.limits.link_in[then.worker], link_in, links);
    const int uplink = rows_.Cause(absl::StrCat("the uplink of worker ", then.worker));
    rows_.AddUplinks(out, {facts_.limits.uplink[then.worker]}, terms.uplink, {}, uplink);
    rows_.AddUplinks(in, {facts_.limits.uplink[then.worker]}, {}, uplink_in, uplink);
  }

  void AddCover(const LiveThen& then, const WindowTerms& terms, const WeightsAway& weights) {
    const Bytes spare = facts_.memory[then.worker].spare;
    if (spare == kUnlimitedBytes) return;
    LinearTerms away = terms.dropped;
    Append(away, terms.link);
    Append(away, terms.uplink);
    Append(away, standing_[then.worker].state);
    Append(away, weights.all);
    made_.program.AddRow(std::move(away), rows_.Size(then.stash + then.queued - spare));
    LinearTerms standing = standing_[then.worker].state;
    Append(standing, weights.all);
    if (then.queued > spare && !standing.empty()) {
      made_.program.AddRow(std::move(standing), rows_.Size(then.queued - spare));
    }
  }

  void AddShared(const SharedUplinks& shared) {
    LinearTerms out;
    LinearTerms in;
    Nanos head = facts_.paths.step_time();
    Nanos tail = facts_.paths.step_time();
    const auto shares = [&](int worker) {
      return std::find(shared.workers.begin(), shared.workers.end(), worker) !=
             shared.workers.end();
    };
    for (size_t index = 0; index < terms_.size(); ++index) {
      const LiveThen& then = moment_.others[index];
      if (!shares(then.worker)) continue;
      Append(out, terms_[index].uplink);
      Append(in, terms_[index].uplink);
      Append(in, weights_[index].uplink_in);
      head = std::min(head, then.stash > Bytes(0) ? then.head : Nanos(0));
      tail = std::min(tail, then.stash > Bytes(0) ? then.tail : Nanos(0));
    }
    if (shares(moment_.worker)) {
      Append(out, columns_.window.uplink);
      Append(in, columns_.window.uplink);
      Append(in, columns_.weights.uplink_in);
      head = Nanos(0);
      tail = Nanos(0);
    }
    const int cause = rows_.Cause(absl::StrCat(shared.name, " while several workers are full"));
    if (!out.empty()) rows_.AddUplinks(Less(before_, head), shared.uplinks, out, {}, cause);
    if (!in.empty()) rows_.AddUplinks(Less(behind_, tail), shared.uplinks, {}, in, cause);
  }

  void AddAllMemory() {
    Bytes room = facts_.limits.idle_memory;
    if (room >= kUnlimitedBytes) return;
    std::map<int, double> gone;  // by column
    const auto add = [&](const LinearTerms& terms, double factor) {
      for (const LinearTerm& term : terms) gone[term.column] += term.coefficient * factor;
    };
    std::vector<const WeightsAway*> weights(facts_.memory.size(), nullptr);
    weights[moment_.worker] = &columns_.weights;
    const MemoryWindow& window = facts_.memory[moment_.worker].windows[moment_.window];
    Bytes live = window.stash + window.queued;
    add(columns_.window.dropped, 1);
    add(columns_.window.uplink, 1);
    for (size_t index = 0; index < terms_.size(); ++index) {
      weights[moment_.others[index].worker] = &weights_[index];
      live += moment_.others[index].stash + moment_.others[index].queued;
      add(terms_[index].dropped, 1);
      add(terms_[index].uplink, 1);
    }
    for (size_t worker = 0; worker < facts_.memory.size(); ++worker) {
      if (facts_.memory[worker].spare == kUnlimitedBytes) return;
      room += facts_.memory[worker].spare;
      const StandingTerms& standing = standing_[worker];
      add(standing.state, 1);
      if (standing.state_link != StandingTerms::kNone) gone[standing.state_link] -= 1;
      if (weights[worker] != nullptr) {
        add(weights[worker]->host, 1);
      } else {
        add(WeightsEverAway(standing, WaysOf(facts_, static_cast<int>(worker))).host, 1);
      }
    }
    LinearTerms row;
    for (const auto& [column, factor] : gone) {
      if (factor != 0) row.push_back({column, factor});
    }
    made_.program.AddRow(std::move(row), rows_.Size(live - room));
  }

  const BoundFacts& facts_;
  const FullMoment& moment_;
  const MomentColumns& columns_;
  const std::vector<StandingTerms>& standing_;
  WindowProgram& made_;
  ProgramRows& rows_;
  const int before_;                  // column: from the begin of the step to the moment, at most
  const int behind_;                  // column: from the moment to the end of the step
  std::vector<WindowTerms> terms_;    // [moment_.others]
  std::vector<WeightsAway> weights_;  // likewise
};

}  // namespace

void AddFullMoment(const BoundFacts& facts, const FullMoment& moment, const MomentColumns& columns,
                   const std::vector<StandingTerms>& standing, WindowProgram& made,
                   ProgramRows& rows) {
  MomentRows(facts, moment, columns, standing, made, rows).Add();
}

}  // namespace siphon
