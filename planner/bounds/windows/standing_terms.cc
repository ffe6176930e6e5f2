#include "planner/bounds/windows/standing_terms.h"

#include <cmath>
#include <utility>

namespace siphon {
namespace {

constexpr double kLongest = ProgramRows::kLongest;

using Terms = LinearTerms;

// How often, at least, a byte that is away with the host crosses the uplink.
struct Crossings {
  double host_out = 1;
  double host_in = 1;
};

class Standing {
 public:
  Standing(const BoundFacts& facts, int worker, WindowProgram& made, ProgramRows& rows)
      : facts_(facts), worker_(worker), program_(made.program), rows_(rows) {}

  StandingTerms Add() {
    const WorkerMemory& memory = facts_.memory[worker_];
    const bool host_steps = facts_.host_steps[worker_].open;
    // Where the host may make the new parameters, they need not leave; and what it has of them and
    // of gradients anyway is not moved again, so that these crossings are counted with its steps'.
    const Terms parameters = AddKind(
        memory.parameters, {.host_out = host_steps ? 0.0 : 1.0, .host_in = host_steps ? 0.0 : 1.0});
    const Terms gradients = AddKind(memory.gradients, {.host_out = host_steps ? 0.0 : 1.0});
    Terms state = AddKind(memory.optimizer_state, {});
    terms_.parameters = parameters;
    terms_.gradients = gradients;
    terms_.state = state;
    if (!state.empty() && ways_.links) terms_.state_link = state.front().column;
    if (!state.empty() && ways_.host) terms_.state_uplink = state.back().column;
    // What the step has changed, or used up, is not where it was kept.
    for (const Terms& changed : {state, parameters, gradients}) {
      if (!changed.empty() && ways_.links) terms_.step_link_out.push_back(changed.front());
      if (!changed.empty() && ways_.host) terms_.step_uplink_out.push_back(changed.back());
    }
    const Terms home = AddHome(state);
    if (host_steps) AddHostSteps(parameters, gradients, std::move(state));
    if (!home.empty() && memory.spare < Bytes(0)) {
      Terms away = terms_.away;
      Append(away, home, -1);
      program_.AddRow(std::move(away), rows_.Size(Bytes(0) - memory.spare));
    }
    return std::move(terms_);
  }

 private:
  // Bytes of one kind, over links and over the uplink.
  Terms AddKind(Bytes bytes, Crossings crossings) {
    Terms all;
    if (bytes == Bytes(0)) return all;
    if (ways_.links) {
      all.push_back({rows_.Part(bytes), 1});
      Append(terms_.on_lenders, {all.back()});
      Append(terms_.link_out, {all.back()});
      Append(terms_.link_in, {all.back()});
    }
    if (ways_.host) {
      all.push_back({rows_.Part(bytes), 1});
      Append(terms_.uplink_out, {all.back()}, crossings.host_out);
      Append(terms_.uplink_in, {all.back()}, crossings.host_in);
    }
    Append(terms_.away, all);
    rows_.AddAtMost(all, rows_.Size(bytes));
    return all;
  }

  // Of swapped optimizer state, that which is home between steps: it need not leave behind its
  // step, but the worker has room for it when all steps are through.
  Terms AddHome(const Terms& state) {
    Terms home;
    for (const LinearTerm& term : state) {
      home.push_back({program_.AddColumn(0, program_.columns[term.column].upper), 1});
      program_.AddRow({{term.column, 1}, {home.back().column, -1}}, 0);
      const bool link = term.column == terms_.state_link;
      (link ? terms_.home_link : terms_.home_uplink) = home.back().column;
      (link ? terms_.step_link_out : terms_.step_uplink_out).push_back({home.back().column, -1});
    }
    return home;
  }

  // Optimizer state that stays with the host; each of parameters in and gradients out is the larger
  // of what was swapped to the host and what the host's steps move.
  void AddHostSteps(const Terms& parameters, const Terms& gradients, Terms state) {
    const WorkerMemory& memory = facts_.memory[worker_];
    const HostStep& host_step = facts_.host_steps[worker_];
    const LinearTerm stepped{rows_.Part(memory.optimizer_state), 1};
    terms_.away.push_back(stepped);
    terms_.state.push_back(stepped);
    terms_.stepped = stepped.column;
    state.push_back(stepped);
    rows_.AddAtMost(state, rows_.Size(memory.optimizer_state));
    const auto larger = [&](const Terms& swapped, double moved) {
      const int column = program_.AddColumn(0, kLongest);
      program_.AddRow({{column, 1}, {stepped.column, -moved}}, 0);
      if (!swapped.empty()) program_.AddRow({{column, 1}, {swapped.back().column, -1}}, 0);
      return LinearTerm{column, 1};
    };
    // Replicas may share what comes in.
    const double shared = facts_.replicas > 1 ? 0 : host_step.parameters;
    terms_.uplink_in.push_back(larger(parameters, shared));
    terms_.uplink_out.push_back(larger(gradients, host_step.gradients));
    // Gradients are complete, and go, when the step begins; parameters come behind them.
    const auto rest = [&](const Terms& swapped, double moved) {
      const int column = program_.AddColumn(0, kLongest);
      Terms row{{column, 1}, {stepped.column, -moved}};
      if (!swapped.empty()) row.push_back({swapped.back().column, 1});
      program_.AddRow(std::move(row), 0);
      return LinearTerm{column, 1};
    };
    terms_.step_uplink_in.push_back(rest(parameters, shared));
    terms_.step_uplink_out.push_back(rest(gradients, host_step.gradients));
    terms_.step_on_host.push_back({stepped.column, rows_.TimeOfUnit(host_step.time)});
    AddStaying(parameters, host_step.most_parameters);
    AddStaying(gradients, host_step.most_gradients);
  }

  // Weights that may be there already when the host has stepped their layers.
  void AddStaying(const Terms& weights, double most) {
    Terms row{{terms_.stepped, most}};
    for (const LinearTerm& term : weights) {
      const LinearTerm stays{program_.AddColumn(0, program_.columns[term.column].upper), -1};
      program_.AddRow({term, stays}, 0);
      row.push_back(stays);
      const bool link = ways_.links && &term == &weights.front();
      (link ? terms_.step_link_out : terms_.step_uplink_out).push_back(stays);
    }
    if (std::isfinite(most) && !weights.empty()) program_.AddRow(std::move(row), 0);
  }

  const BoundFacts& facts_;
  const int worker_;
  const SwapWays ways_ = WaysOf(facts_, worker_);
  LinearProgram& program_;
  ProgramRows& rows_;
  StandingTerms terms_;
};

}  // namespace

SwapWays WaysOf(const BoundFacts& facts, int worker) {
  return {.links = facts.limits.link_out[worker].value > 0,
          .host = FastestOut(facts.limits.uplink[worker]).value > 0};
}

WeightsAway AddWeightsAway(const StandingTerms& standing, const SwapWays& ways,
                           WindowProgram& made) {
  WeightsAway away;
  for (const Terms* kind : {&standing.parameters, &standing.gradients}) {
    for (const LinearTerm& term : *kind) {
      const int column = made.program.AddColumn(0, made.program.columns[term.column].upper);
      made.program.AddRow({{term.column, 1}, {column, -1}}, 0);
      const bool link = ways.links && &term == &kind->front();
      away.all.push_back({column, 1});
      if (!link) away.host.push_back({column, 1});
      (link ? away.link_in : away.uplink_in).push_back({column, 1});
      // The host has parameters as they are until the step changes them.
      if (kind == &standing.gradients) {
        (link ? away.link_out : away.uplink_out).push_back({column, 1});
      }
    }
  }
  return away;
}

WeightsAway WeightsEverAway(const StandingTerms& standing, const SwapWays& ways) {
  WeightsAway away;
  for (const Terms* kind : {&standing.parameters, &standing.gradients}) {
    Append(away.all, *kind);
    if (ways.host && !kind->empty()) away.host.push_back(kind->back());
  }
  return away;
}

StateAtFirst AddStateAtFirst(const StandingTerms& standing, WindowProgram& made) {
  StateAtFirst first;
  LinearProgram& program = made.program;
  for (const LinearTerm& term : standing.state) {
    const bool link = term.column == standing.state_link;
    if (!link && term.column != standing.state_uplink) {
      first.all.push_back(term);
      continue;
    }
    const int home = link ? standing.home_link : standing.home_uplink;
    const double most = program.columns[term.column].upper;
    const int left = program.AddColumn(0, most);
    const int away = program.AddColumn(0, most);
    program.AddRow({{home, 1}, {left, -1}}, 0);
    program.AddRow({{term.column, 1}, {home, -1}, {left, 1}, {away, -1}}, 0);
    first.all.push_back({away, 1});
    (link ? first.link_out : first.uplink_out).push_back({left, 1});
  }
  return first;
}

StandingTerms AddStandingTerms(const BoundFacts& facts, int worker, WindowProgram& made,
                               ProgramRows& rows) {
  return Standing(facts, worker, made, rows).Add();
}

}  // namespace siphon
