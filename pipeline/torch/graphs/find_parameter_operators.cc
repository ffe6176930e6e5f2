#include "pipeline/torch/graphs/find_parameter_operators.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace siphon {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;

// Nodes of LibTorch 2.11 that hand a gradient on in another shape or type. One that is missing here
// costs memory, not correctness: its parameter's gradient is computed in the input half.
constexpr std::array<std::string_view, 13> kViews = {
    "AliasBackward0",  "ExpandBackward0",    "PermuteBackward0",    "SelectBackward0",
    "SliceBackward0",  "SqueezeBackward0",   "SqueezeBackward1",    "TBackward0",
    "ToCopyBackward0", "TransposeBackward0", "UnsafeViewBackward0", "UnsqueezeBackward0",
    "ViewBackward0"};

// The node's only way on, or null.
const Node* OnlyNext(const Node& node) {
  const Node* only = nullptr;
  for (const Edge& edge : node.next_edges()) {
    if (!edge.is_valid()) continue;
    if (only != nullptr) return nullptr;
    only = edge.function.get();
  }
  return only;
}

}  // namespace

bool IsParameter(const Node& node, const ParameterLeaves& parameters) {
  const Node* at = &node;
  while (!parameters.contains(at)) {
    if (std::find(kViews.begin(), kViews.end(), at->name()) == kViews.end()) return false;
    at = OnlyNext(*at);
    if (at == nullptr) return false;
  }
  return true;
}

GraphNodes FindParameterOperators(const edge_list& roots, const ParameterLeaves& parameters) {
  GraphNodes nodes;
  std::unordered_set<const Node*> seen;
  edge_list waiting;
  const auto visit = [&](const Edge& edge) {
    if (edge.is_valid() && seen.insert(edge.function.get()).second) waiting.push_back(edge);
  };
  for (const Edge& root : roots) {
    if (root.is_valid() && !IsParameter(*root.function, parameters)) visit(root);
  }
  while (!waiting.empty()) {
    const Edge edge = waiting.back();
    waiting.pop_back();
    bool takes_parameter = false;
    for (const Edge& next : edge.function->next_edges()) {
      if (next.is_valid() && IsParameter(*next.function, parameters)) {
        takes_parameter = true;
      } else {
        visit(next);
      }
    }
    (takes_parameter ? nodes.operators : nodes.others).emplace_back(edge.function, 0);
  }
  return nodes;
}

}  // namespace siphon
