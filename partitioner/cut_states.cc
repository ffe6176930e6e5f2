#include "partitioner/cut_states.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// ancestors[n]: all nodes that n needs, without n.
std::vector<NodeSet> AncestorsOf(const CutGraph& graph) {
  std::vector<NodeSet> ancestors(graph.nodes.size(), NodeSet(graph.nodes.size()));
  for (const int node : TopologicalOrder(graph)) {
    for (const int producer : graph.nodes[node].producers) {
      ancestors[node].InsertAll(ancestors[producer]);
      ancestors[node].Insert(producer);
    }
  }
  return ancestors;
}

class StateBuilder {
 public:
  explicit StateBuilder(const CutGraph& graph) : graph_(graph), ancestors_(AncestorsOf(graph)) {}

  const std::vector<NodeSet>& ancestors() const { return ancestors_; }

  CutState Build(NodeSet before) const {
    CutState state;
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      if (!before.Contains(index)) continue;
      const CutNode& node = graph_.nodes[index];
      ++state.nodes;
      state.compute_ns += node.compute_ns;
      state.parameter_bytes += node.parameter_bytes;
      state.training_state_bytes += node.training_state_bytes;
      state.stash_bytes += node.stash_bytes;
      const auto is_after = [&](int consumer) { return !before.Contains(consumer); };
      if (std::any_of(node.consumers.begin(), node.consumers.end(), is_after)) {
        state.crossing_bytes += node.output_bytes;
      }
    }
    state.frontier_bytes = FrontierBytes(before);
    state.before = std::move(before);
    return state;
  }

 private:
  int64_t FrontierBytes(const NodeSet& before) const {
    std::vector<int> last;  // nodes before the cut with no consumer there
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      const std::vector<int>& consumers = graph_.nodes[index].consumers;
      const auto is_before = [&](int consumer) { return before.Contains(consumer); };
      if (before.Contains(index) && std::none_of(consumers.begin(), consumers.end(), is_before)) {
        last.push_back(static_cast<int>(index));
      }
    }
    int64_t bytes = 0;
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      if (before.Contains(index) && IsOnFrontier(static_cast<int>(index), last)) {
        bytes += graph_.nodes[index].output_bytes;
      }
    }
    return bytes;
  }

  bool IsOnFrontier(int node, const std::vector<int>& last) const {
    for (const int end : last) {
      if (end == node) return true;
      if (!ancestors_[end].Contains(node)) continue;
      for (const int consumer : graph_.nodes[node].consumers) {
        if (consumer != end && !ancestors_[end].Contains(consumer)) return true;
      }
    }
    return false;
  }

  const CutGraph& graph_;
  std::vector<NodeSet> ancestors_;
};

// Nodes that are reached from the first source, the first of the file.
std::vector<bool> ReachedFromFirstSource(const CutGraph& graph) {
  std::vector<bool> reached(graph.nodes.size(), false);
  size_t source = 0;
  while (!graph.nodes[source].producers.empty()) ++source;
  reached[source] = true;
  for (const int node : TopologicalOrder(graph)) {
    for (const int producer : graph.nodes[node].producers) {
      if (reached[producer]) reached[node] = true;
    }
  }
  return reached;
}

// All sets that hold their own producers and are made of candidates with their ancestors; nothing
// when there are more than `most`.
std::optional<std::vector<NodeSet>> ListSets(const CutGraph& graph,
                                             const std::vector<NodeSet>& ancestors,
                                             const std::vector<bool>& candidates, size_t most) {
  const size_t count = graph.nodes.size();
  std::vector<NodeSet> sets = {NodeSet(count)};
  absl::flat_hash_set<NodeSet> known(sets.begin(), sets.end());
  for (size_t next = 0; next < sets.size(); ++next) {
    for (size_t node = 0; node < count; ++node) {
      if (!candidates[node] || sets[next].Contains(node)) continue;
      const std::vector<int>& producers = graph.nodes[node].producers;
      const bool waits = std::any_of(producers.begin(), producers.end(), [&](int producer) {
        return candidates[producer] && !sets[next].Contains(producer);
      });
      if (waits) continue;
      NodeSet set = sets[next];
      set.InsertAll(ancestors[node]);
      set.Insert(node);
      if (!known.insert(set).second) continue;
      if (sets.size() == most) return std::nullopt;
      sets.push_back(std::move(set));
    }
  }
  return sets;
}

// Cuts of one order; where they are too many, those nearest to equal shares of the work.
std::vector<NodeSet> SetsAlongOrder(const CutGraph& graph, size_t most) {
  const std::vector<int> order = TopologicalOrder(graph);
  int64_t total = 0;
  for (const CutNode& node : graph.nodes) total += node.compute_ns;
  std::vector<NodeSet> sets = {NodeSet(order.size())};
  NodeSet set = sets[0];
  int64_t done = 0;
  for (size_t place = 0; place < order.size(); ++place) {
    set.Insert(order[place]);
    done += graph.nodes[order[place]].compute_ns;
    const size_t left = order.size() - 1 - place;  // cuts that are still to come
    const bool is_last = left == 0;
    const bool all_fit = sets.size() + 1 + left <= most;
    // Share of the work that `sets` cuts, this one included, should have done by now.
    const double share = static_cast<double>(sets.size()) / static_cast<double>(most - 1);
    const bool is_due = static_cast<double>(done) >= share * static_cast<double>(total);
    if (is_last || all_fit || (is_due && sets.size() + 1 < most)) sets.push_back(set);
  }
  return sets;
}

void FillStates(const StateBuilder& builder, std::vector<NodeSet> sets, CutStates& cuts) {
  NodeSet all(cuts.graph.nodes.size());
  for (size_t node = 0; node < cuts.graph.nodes.size(); ++node) all.Insert(node);
  // What the first source does not reach and nobody needs runs last.
  if (std::find(sets.begin(), sets.end(), all) == sets.end()) sets.push_back(all);
  for (NodeSet& set : sets) cuts.states.push_back(builder.Build(std::move(set)));
  std::stable_sort(cuts.states.begin(), cuts.states.end(),
                   [](const CutState& a, const CutState& b) { return a.nodes < b.nodes; });
}

}  // namespace

CutStates ListCuts(const CutGraph& graph, CutChoice choice, size_t most_states) {
  CutStates cuts{.graph = graph};
  while (choice != CutChoice::kAlongOneOrder) {
    const StateBuilder builder(cuts.graph);
    const std::vector<bool> candidates = choice == CutChoice::kEvery
                                             ? std::vector<bool>(cuts.graph.nodes.size(), true)
                                             : ReachedFromFirstSource(cuts.graph);
    auto sets = ListSets(cuts.graph, builder.ancestors(), candidates, most_states);
    if (sets.has_value()) {
      FillStates(builder, std::move(*sets), cuts);
      return cuts;
    }
    CutGraph smaller = JoinNeighbours(cuts.graph);
    if (smaller.nodes.size() == cuts.graph.nodes.size()) break;
    cuts.graph = std::move(smaller);
    cuts.left_out = absl::StrCat("the model has more than ", most_states,
                                 " cuts; neighbouring nodes were joined until ",
                                 cuts.graph.nodes.size(), " of ", graph.nodes.size(), " were left");
  }
  const bool thinned = graph.nodes.size() + 1 > most_states;
  cuts.graph = graph;
  if (choice != CutChoice::kAlongOneOrder || thinned) {
    cuts.left_out =
        absl::StrCat("the model has more than ", most_states, " cuts; only ",
                     thinned ? "some " : "", "cuts along one order of its nodes were tried");
  }
  FillStates(StateBuilder(cuts.graph), SetsAlongOrder(cuts.graph, most_states), cuts);
  return cuts;
}

}  // namespace siphon
