#include "planner/bounds/windows/window_columns.h"

#include <cstddef>
#include <cstdint>

#include "planner/bounds/windows/standing_terms.h"

namespace siphon {
namespace {

constexpr int kWays = 3;

}  // namespace

WindowColumns::WindowColumns(const BoundFacts& facts, int worker, LayerChoices choices,
                             WindowProgram& made, ProgramRows& rows)
    : facts_(facts), worker_(worker), choices_(choices), program_(made.program), rows_(rows) {
  if (choices_ == LayerChoices::kWhole) AddWholeLayers();
}

WindowTerms WindowColumns::Add(const MemoryWindow& window) {
  return choices_ == LayerChoices::kWhole ? Whole(window) : AddFractional(window);
}

WindowTerms WindowColumns::AddFractional(const MemoryWindow& window) {
  WindowTerms terms;
  for (const LayerKind& kind : facts_.memory[worker_].layers) {
    const int64_t count = facts_.Count(worker_, window, kind);
    if (count == 0) continue;
    const int column = rows_.Part(kind.stash * count);
    terms.dropped.push_back({column, 1});
    terms.recompute.push_back({column, rows_.Time(kind.recompute) / rows_.Size(kind.stash)});
  }
  rows_.AddAtMost(terms.dropped, rows_.Size(window.stash - window.own_last_layer));
  const Bytes movable = window.stash - window.own_last_layer;
  const SwapWays ways = WaysOf(facts_, worker_);
  if (ways.links) terms.link.push_back({rows_.Part(movable), 1});
  if (ways.host) terms.uplink.push_back({rows_.Part(movable), 1});
  LinearTerms sum = terms.link;
  Append(sum, terms.uplink);
  rows_.AddAtMost(sum, rows_.Size(movable));
  Append(sum, terms.dropped);
  rows_.AddAtMost(sum, rows_.Size(window.stash - window.own_last_layer));
  return terms;
}

void WindowColumns::AddWholeLayers() {
  const SwapWays ways = WaysOf(facts_, worker_);
  for (const LayerKind& kind : facts_.memory[worker_].layers) {
    LinearTerms all;
    for (const bool open : {true, ways.links, ways.host}) {
      whole_.push_back(program_.AddColumn(0, open ? kind.layers : 0));
      if (kind.is_whole) program_.columns.back().kind = ColumnKind::kInteger;
      all.push_back({whole_.back(), 1});
    }
    rows_.AddAtMost(all, kind.layers);
  }
}

WindowTerms WindowColumns::Whole(const MemoryWindow& window) const {
  WindowTerms terms;
  const std::vector<LayerKind>& layers = facts_.memory[worker_].layers;
  for (size_t index = 0; index < layers.size(); ++index) {
    const int64_t waiting = facts_.Count(worker_, window, layers[index]) / layers[index].layers;
    const double bytes = rows_.Size(layers[index].stash * waiting);
    const double time = rows_.Time(layers[index].recompute * waiting);
    const int* columns = &whole_[kWays * index];
    terms.dropped.push_back({columns[0], bytes});
    terms.recompute.push_back({columns[0], time});
    // Of the microbatch whose backward begins, too, which may have its layers in one by one.
    terms.link.push_back({columns[1], bytes});
    terms.uplink.push_back({columns[2], bytes});
  }
  return terms;
}

}  // namespace siphon
