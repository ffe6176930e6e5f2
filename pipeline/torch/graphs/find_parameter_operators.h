#ifndef SIPHON_PIPELINE_TORCH_FIND_PARAMETER_OPERATORS_H_
#define SIPHON_PIPELINE_TORCH_FIND_PARAMETER_OPERATORS_H_

#include <unordered_set>

#include "pipeline/torch/aten.h"

namespace siphon {

// The ends of a layer's graph where its parameters enter (gradient accumulators).
using ParameterLeaves = std::unordered_set<const torch::autograd::Node*>;

// Whether the gradient that arrives here is that of a parameter, or of a view of one (transposed,
// narrowed, cast, ...): what is left to do is no arithmetic.
bool IsParameter(const torch::autograd::Node& node, const ParameterLeaves& parameters);

// The nodes of a graph apart from its leaves and what only passes on a parameter's gradient: those
// that take a parameter or a view of one, and all others; each once, as the edge of its first
// output.
struct GraphNodes {
  torch::autograd::edge_list operators;
  torch::autograd::edge_list others;
};

// Sorts what lies between `roots` and the leaves. A parameter that is computed with before it meets
// an activation (a normalised weight, say) makes that computation an operator too, and nothing
// else: what takes its result is none. O(nodes of the graph).
GraphNodes FindParameterOperators(const torch::autograd::edge_list& roots,
                                  const ParameterLeaves& parameters);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_FIND_PARAMETER_OPERATORS_H_
