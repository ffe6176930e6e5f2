#include "planner/bounds/windows/streamed_weights.h"

#include <algorithm>
#include <cstddef>

namespace siphon {
namespace {

// Columns of at most what is ever away.
LinearTerms PartsOf(const LinearTerms& standing, LinearProgram& program) {
  LinearTerms parts;
  for (const LinearTerm& term : standing) {
    parts.push_back({program.AddColumn(0, program.columns[term.column].upper), 1});
    program.AddRow({{term.column, 1}, {parts.back().column, -1}}, 0);
  }
  return parts;
}

}  // namespace

StreamedWeights AddStreamedWeights(const BoundFacts& facts, int worker,
                                   const StandingTerms& standing, WindowProgram& made) {
  const WorkerMemory& memory = facts.memory[worker];
  StreamedWeights streamed{.ways = WaysOf(facts, worker),
                           .parameter_uses = memory.parameter_uses,
                           .gradient_uses = memory.gradient_uses};
  if (memory.parameter_uses.empty() || facts.updates_within) return streamed;
  streamed.parameters = PartsOf(standing.parameters, made.program);
  streamed.gradients = PartsOf(standing.gradients, made.program);
  return streamed;
}

void LimitToStreamed(const StreamedWeights& streamed, const MemoryWindow& window,
                     const WeightsAway& away, WindowProgram& made) {
  LinearTerms limits = streamed.parameters;
  if (!window.split) Append(limits, streamed.gradients);
  for (size_t index = 0; index < limits.size(); ++index) {
    made.program.AddRow({limits[index], {away.all[index].column, -1}}, 0);
  }
}

StreamTraffic StreamsWithin(const StreamedWeights& streamed, int from, int to) {
  StreamTraffic traffic;
  const auto add = [&](const LinearTerms& columns, const std::vector<int>& uses, bool leaves) {
    const auto begin = std::lower_bound(uses.begin(), uses.end(), from);
    const auto times = static_cast<double>(std::lower_bound(begin, uses.end(), to) - begin) - 1;
    if (times <= 0) return;
    for (size_t way = 0; way < columns.size(); ++way) {
      const bool link = streamed.ways.links && way == 0;
      Append(link ? traffic.link_in : traffic.uplink_in, {columns[way]}, times);
      if (leaves) Append(link ? traffic.link_out : traffic.uplink_out, {columns[way]}, times);
    }
  };
  add(streamed.parameters, streamed.parameter_uses, false);
  add(streamed.gradients, streamed.gradient_uses, true);
  return traffic;
}

}  // namespace siphon
