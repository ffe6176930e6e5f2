#include "planner/bounds/moments/moment_columns.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/bounds/windows/standing_terms.h"

namespace siphon {
namespace {

constexpr double kLongest = ProgramRows::kLongest;
// Kinds of layers that take up to so many times as long a byte are one class.
constexpr double kSpread = 1.3;
constexpr int kMostClasses = 6;
constexpr int kNoClass = -1;  // of what takes no time

using Terms = LinearTerms;

class FlowMaker {
 public:
  FlowMaker(const BoundFacts& facts, const WorkerMoments& moments, int worker, WindowProgram& made,
            ProgramRows& rows)
      : facts_(facts),
        memory_(facts.memory[worker]),
        moments_(moments),
        worker_(worker),
        last_(static_cast<int>(moments.moments.size()) - 1),
        program_(made.program),
        rows_(rows) {}

  FlowColumns Make() {
    FindClasses();
    AddTimes();
    AddLives();
    AddRecomputation();
    const SwapWays ways = WaysOf(facts_, worker_);
    AddWay(ways.links, made_.link);
    AddWay(ways.host, made_.host);
    AddLifeLimits();
    AddState();
    for (size_t stage = 0; stage < memory_.stages.size(); ++stage) {
      for (WayColumns* way : {&made_.link, &made_.host}) {
        if (way->open) AddWeights(stage, *way);
      }
      AddWeightLimits(stage);
    }
    for (int moment = 0; moment <= last_; ++moment) AddMemory(moment);
    for (int moment = 0; moment < last_; ++moment) AddRates(moment);
    return std::move(made_);
  }

 private:
  const Moment& At(int moment) const { return moments_.moments[moment]; }
  void Least(const Terms& terms, double least) { AddMerged(program_, terms, least); }

  // Time of a byte of the kind.
  double CostOf(const LayerKind& kind) const {
    return rows_.Time(kind.recompute) / rows_.Size(kind.stash);
  }

  // What is computed again before its backward takes room, of a class a byte in at most the time of
  // its dearest kind.
  void FindClasses() {
    std::vector<size_t> order;
    for (size_t kind = 0; kind < memory_.layers.size(); ++kind) order.push_back(kind);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return CostOf(memory_.layers[a]) < CostOf(memory_.layers[b]);
    });
    class_of_kind_.resize(order.size());
    double least = -1;
    for (const size_t kind : order) {
      const double cost = CostOf(memory_.layers[kind]);
      class_of_kind_[kind] = kNoClass;
      if (cost == 0) continue;
      const bool fresh = dearest_.empty() || cost > kSpread * least;
      if (fresh && static_cast<int>(dearest_.size()) < kMostClasses) {
        dearest_.push_back(cost);
        least = cost;
      }
      dearest_.back() = cost;
      class_of_kind_[kind] = static_cast<int>(dearest_.size()) - 1;
    }
  }

  void AddTimes() {
    made_.time.push_back(program_.AddColumn(0, 0));
    for (int moment = 1; moment < last_; ++moment) {
      made_.time.push_back(program_.AddColumn(rows_.Time(At(moment).head), kLongest));
    }
    made_.time.push_back(program_.AddColumn(0, kLongest));
  }

  void AddLives() {
    for (const MomentLife& life : moments_.lives) {
      Terms& dropped = made_.dropped.emplace_back();
      Terms& recompute = made_.recompute.emplace_back();
      for (const LayerKind& kind : memory_.layers) {
        if (kind.stage != memory_.stages[life.stage]) {
          dropped.push_back({0, 0});
          recompute.push_back({0, 0});
          continue;
        }
        dropped.push_back({rows_.Part(kind.stash * kind.layers), 1});
        recompute.push_back({dropped.back().column, CostOf(kind)});
      }
    }
  }

  // Of a life and a class.
  Terms RecomputeOf(int life, int of_class) const {
    Terms terms;
    for (size_t kind = 0; kind < class_of_kind_.size(); ++kind) {
      const LinearTerm& term = made_.recompute[life][kind];
      if (class_of_kind_[kind] == of_class && term.coefficient != 0) terms.push_back(term);
    }
    return terms;
  }

  bool IsLive(int life, int moment) const {
    return moments_.lives[life].forward < moment && moment <= moments_.lives[life].backward;
  }

  // Of a class `ahead`: at each moment the time spent on what is live then and computed again
  // already; never more than all of that takes, and after each backward not negative, so that all
  // it needs is there.
  void AddRecomputation() {
    made_.within.resize(last_ + 1);
    made_.early.resize(last_ + 1);
    const int classes = static_cast<int>(dearest_.size());
    ahead_.assign(classes, std::vector<int>(last_ + 1, FlowColumns::kNone));
    for (int of_class = 0; of_class < classes; ++of_class) {
      for (int moment = 1; moment <= last_; ++moment) AddAhead(of_class, moment);
    }
    for (int moment = 1; moment < last_; ++moment) {
      Terms row{{made_.time[moment + 1], 1}, {made_.time[moment], -1}};
      Append(row, made_.within[moment], -1);
      Append(row, made_.early[moment + 1], -1);
      Least(row, rows_.Time(At(moment).duration));
    }
  }

  void AddAhead(int of_class, int moment) {
    Terms live;
    for (size_t life = 0; life < moments_.lives.size(); ++life) {
      if (IsLive(static_cast<int>(life), moment)) {
        Append(live, RecomputeOf(static_cast<int>(life), of_class));
      }
    }
    const int ahead = program_.AddColumn(0, live.empty() ? 0 : kLongest);
    ahead_[of_class][moment] = ahead;
    Terms grows{{ahead, -1}};
    if (!live.empty()) {
      made_.early[moment].push_back({program_.AddColumn(0, kLongest), 1});
      grows.push_back(made_.early[moment].back());
      live.push_back({ahead, -1});
      Least(live, 0);
    }
    if (moment > 1) {
      grows.push_back({ahead_[of_class][moment - 1], 1});
      const int own = At(moment - 1).ends_life;
      const Terms needed = own == Moment::kNoLife ? Terms() : RecomputeOf(own, of_class);
      if (!needed.empty()) {
        const LinearTerm within{program_.AddColumn(0, kLongest), 1};
        made_.within[moment - 1].push_back(within);
        grows.push_back(within);
        Append(grows, needed, -1);
      }
    }
    Least(grows, 0);
  }

  void AddWay(bool open, WayColumns& way) {
    way.open = open;
    if (!open) return;
    Bytes most;
    for (const MomentLife& life : moments_.lives) {
      way.sent.push_back(rows_.Part(StashOf(life)));
      most += StashOf(life);
    }
    for (std::vector<int>* columns : {&way.out, &way.in, &way.away}) {
      columns->push_back(program_.AddColumn(0, 0));
      for (int moment = 1; moment <= last_; ++moment) columns->push_back(rows_.Part(most));
    }
    for (int moment = 1; moment <= last_; ++moment) {
      Least({{way.out[moment], 1}, {way.out[moment - 1], -1}}, 0);
      Least({{way.in[moment], 1}, {way.in[moment - 1], -1}}, 0);
      Least({{way.out[moment], 1}, {way.in[moment], -1}, {way.away[moment], -1}}, 0);
      Terms made{{way.out[moment], -1}};
      Terms used{{way.in[moment], 1}};
      Terms live{{way.away[moment], -1}};
      for (size_t life = 0; life < moments_.lives.size(); ++life) {
        const LinearTerm sent{way.sent[life], 1};
        const MomentLife& of = moments_.lives[life];
        if (of.forward < moment) made.push_back(sent);
        if (of.backward < moment) Append(used, {sent}, -1);
        if (of.forward < moment && moment <= of.backward) live.push_back(sent);
      }
      Least(made, 0);
      if (At(moment - 1).ends_life != Moment::kNoLife) Least(used, 0);
      if (At(moment).ends_life != Moment::kNoLife) Least(live, 0);
    }
  }

  Bytes StashOf(const MomentLife& life) const {
    Bytes stash;
    for (const LayerKind& kind : memory_.layers) {
      if (kind.stage == memory_.stages[life.stage]) stash += kind.stash * kind.layers;
    }
    return stash;
  }

  void AddLifeLimits() {
    for (size_t life = 0; life < moments_.lives.size(); ++life) {
      Terms all = made_.dropped[life];
      all.erase(std::remove_if(all.begin(), all.end(),
                               [](const LinearTerm& term) { return term.coefficient == 0; }),
                all.end());
      for (const WayColumns* way : {&made_.link, &made_.host}) {
        if (way->open) all.push_back({way->sent[life], 1});
      }
      rows_.AddAtMost(all, rows_.Size(StashOf(moments_.lives[life])));
    }
  }

  void AddState() {
    const Bytes all = memory_.optimizer_state;
    if (all == Bytes(0)) return;
    if (facts_.host_steps[worker_].open) made_.stepped = rows_.Part(all);
    for (WayColumns* way : {&made_.link, &made_.host}) {
      if (!way->open) continue;
      for (int moment = 0; moment <= last_; ++moment) {
        way->state.push_back(rows_.Part(all));
        way->state_in.push_back(rows_.Part(all * moment));
        if (moment == 0) continue;
        Least({{way->state_in[moment], 1}, {way->state_in[moment - 1], -1}}, 0);
        Terms left = StateOut(*way, moment);
        Append(left, StateOut(*way, moment - 1), -1);
        Least(left, 0);
      }
    }
    for (int moment = 0; moment <= last_; ++moment) {
      rows_.AddAtMost(StateAway(moment), rows_.Size(all));
    }
  }

  Terms StateAway(int moment) const {
    Terms away;
    for (const WayColumns* way : {&made_.link, &made_.host}) {
      if (!way->state.empty()) away.push_back({way->state[moment], 1});
    }
    if (made_.stepped != FlowColumns::kNone) away.push_back({made_.stepped, 1});
    return away;
  }

  // What is away as an action begins that uses it comes in behind that; so does what others find
  // there. Gradients that a backward has changed are away behind it only when they have left then.
  void AddWeights(size_t stage, WayColumns& way) {
    StageWeights& weights = way.weights.emplace_back();
    const Bytes parameters = moments_.parameters[stage];
    const Bytes gradients = moments_.gradients[stage];
    for (int moment = 0; moment <= last_; ++moment) {
      weights.parameters.push_back(rows_.Part(parameters));
      weights.gradients.push_back(rows_.Part(gradients));
      weights.in.push_back(rows_.Part((parameters + gradients) * moment));
      weights.out.push_back(rows_.Part(gradients * moment));
    }
    for (int moment = 0; moment < last_; ++moment) {
      const bool own = moment > 0 && At(moment).stage == static_cast<int>(stage);
      const bool changes = own && At(moment).uses_gradients;
      const Terms in{{weights.in[moment + 1], 1}, {weights.in[moment], -1}};
      Least(in, 0);
      Terms needed = in;
      needed.push_back({weights.parameters[moment], -1});
      if (own) Least(needed, 0);
      if (!own) needed.push_back({weights.parameters[moment + 1], 1});
      needed.push_back({weights.gradients[moment], -1});
      if (!changes) needed.push_back({weights.gradients[moment + 1], 1});
      Least(needed, 0);
      Terms out{{weights.out[moment + 1], 1}, {weights.out[moment], -1}};
      Least(out, 0);
      out.push_back({weights.gradients[moment + 1], -1});
      if (!changes) out.push_back({weights.gradients[moment], 1});
      Least(out, 0);
    }
  }

  void AddWeightLimits(size_t stage) {
    if (!made_.link.open || !made_.host.open) return;
    const StageWeights& link = made_.link.weights[stage];
    const StageWeights& host = made_.host.weights[stage];
    for (int moment = 0; moment <= last_; ++moment) {
      rows_.AddAtMost({{link.parameters[moment], 1}, {host.parameters[moment], 1}},
                      rows_.Size(moments_.parameters[stage]));
      rows_.AddAtMost({{link.gradients[moment], 1}, {host.gradients[moment], 1}},
                      rows_.Size(moments_.gradients[stage]));
    }
  }

  Terms GoneAt(int moment) const {
    Terms gone;
    for (size_t life = 0; life < moments_.lives.size(); ++life) {
      if (!IsLive(static_cast<int>(life), moment)) continue;
      for (const LinearTerm& term : made_.dropped[life]) {
        if (term.coefficient != 0) gone.push_back(term);
      }
    }
    for (size_t of_class = 0; of_class < dearest_.size(); ++of_class) {
      const bool counted = moment > 0 && dearest_[of_class] > 0;
      if (counted) gone.push_back({ahead_[of_class][moment], -1 / dearest_[of_class]});
    }
    return gone;
  }

  void AddMemory(int moment) {
    made_.gone.push_back(GoneAt(moment));
    if (memory_.spare == kUnlimitedBytes) return;
    const Bytes excess = At(moment).live + At(moment).fixed - memory_.spare;
    if (excess <= Bytes(0)) return;
    Terms away = StateAway(moment);
    Append(away, made_.gone[moment]);
    for (const WayColumns* way : {&made_.link, &made_.host}) {
      if (way->open) away.push_back({way->away[moment], 1});
      Append(away, WeightsAwayAt(*way, moment));
    }
    Least(away, rows_.Size(excess));
  }

  // What moves between a moment and the next.
  void AddRates(int moment) {
    const Terms time{{made_.time[moment + 1], 1}, {made_.time[moment], -1}};
    const auto moved = [moment](const WayColumns& way, Terms (*all)(const WayColumns&, int)) {
      Terms terms = all(way, moment + 1);
      Append(terms, all(way, moment), -1);
      return terms;
    };
    const auto carried = [&](BytesPerSecond rate, const Terms& bytes) {
      if (bytes.empty() || rate == kUnlimitedRate) return;
      Terms row;
      Append(row, time, rows_.Rate(rate));
      Append(row, bytes, -1);
      Least(row, 0);
    };
    carried(facts_.limits.link_out[worker_], moved(made_.link, AllOut));
    carried(facts_.limits.link_in[worker_], moved(made_.link, AllIn));
    rows_.AddUplink(time, facts_.limits.uplink[worker_], moved(made_.host, AllOut),
                    moved(made_.host, AllIn));
  }

  const BoundFacts& facts_;
  const WorkerMemory& memory_;
  const WorkerMoments& moments_;
  const int worker_;
  const int last_;
  LinearProgram& program_;
  ProgramRows& rows_;
  FlowColumns made_;
  std::vector<int> class_of_kind_;       // [kind of layer]
  std::vector<double> dearest_;          // [class]: time of a byte, at most
  std::vector<std::vector<int>> ahead_;  // [class][moment]
};

}  // namespace

LinearTerms StateOut(const WayColumns& way, int moment) {
  if (way.state.empty()) return {};
  return {{way.state[moment], 1}, {way.state_in[moment], 1}, {way.state[0], -1}};
}

LinearTerms WeightsAwayAt(const WayColumns& way, int moment) {
  LinearTerms away;
  for (const StageWeights& weights : way.weights) {
    away.push_back({weights.parameters[moment], 1});
    away.push_back({weights.gradients[moment], 1});
  }
  return away;
}

LinearTerms AllOut(const WayColumns& way, int moment) {
  if (!way.open) return {};
  LinearTerms out = StateOut(way, moment);
  out.push_back({way.out[moment], 1});
  for (const StageWeights& weights : way.weights) out.push_back({weights.out[moment], 1});
  return out;
}

LinearTerms AllIn(const WayColumns& way, int moment) {
  if (!way.open) return {};
  LinearTerms in{{way.in[moment], 1}};
  if (!way.state.empty()) in.push_back({way.state_in[moment], 1});
  for (const StageWeights& weights : way.weights) in.push_back({weights.in[moment], 1});
  return in;
}

FlowColumns AddFlowColumns(const BoundFacts& facts, const MomentFacts& moments, int worker,
                           WindowProgram& made, ProgramRows& rows) {
  return FlowMaker(facts, moments.workers[worker], worker, made, rows).Make();
}

}  // namespace siphon
