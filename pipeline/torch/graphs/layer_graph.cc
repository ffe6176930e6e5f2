#include "pipeline/torch/graphs/layer_graph.h"

#include <utility>

#include "pipeline/torch/graphs/find_parameter_operators.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "planner/status.h"

namespace siphon {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::variable_list;

enum class AfterRun { kFree, kKeep };  // what the nodes saved

// The gradients of `ends`, undefined where the roots do not depend on one.
variable_list RunGraph(const edge_list& roots, const variable_list& root_gradients,
                       const edge_list& ends, AfterRun after) {
  variable_list found;
  if (!roots.empty() && !ends.empty()) {
    found = torch::autograd::Engine::get_default_engine().execute(
        roots, root_gradients, /*keep_graph=*/after == AfterRun::kKeep, /*create_graph=*/false,
        /*accumulate_grad=*/false, ends);
  }
  found.resize(ends.size());
  return found;
}

// The edges of the leaves that take a gradient.
template <typename Leaves>
void AppendEdges(const Leaves& leaves, edge_list& edges) {
  for (const auto& leaf : leaves) {
    if (leaf.edge.is_valid()) edges.push_back(leaf.edge);
  }
}

std::vector<at::Tensor> ContiguousOutputs(std::vector<at::Tensor> outputs) {
  for (at::Tensor& output : outputs) {
    TORCH_CHECK(output.defined(), "the layer returned an undefined tensor");
    output = ContiguousAligned(output);
  }
  return outputs;
}

// One edge for each output of each operator.
void AppendOutputs(const edge_list& operators, edge_list& edges) {
  for (const Edge& edge : operators) {
    for (uint32_t output = 0; output < edge.function->num_inputs(); ++output) {
      edges.emplace_back(edge.function, output);
    }
  }
}

// Leaves the operators no way on but to their parameters, and frees what all other nodes saved. A
// saved x still knows the node that made it, so dropping the graph's roots alone would not do that.
void KeepOperatorsOnly(const GraphNodes& nodes, const ParameterLeaves& leaves) {
  for (const Edge& edge : nodes.operators) {
    for (Edge& next : edge.function->next_edges()) {
      if (next.is_valid() && !IsParameter(*next.function, leaves)) next = Edge();
    }
  }
  for (const Edge& edge : nodes.others) {
    edge.function->release_variables();
    for (Edge& next : edge.function->next_edges()) next = Edge();
  }
}

}  // namespace

LayerGraph::Leaf LayerGraph::MakeLeaf(at::Tensor& tensor) {
  tensor = tensor.detach();  // shares memory; has no history
  Leaf leaf;
  leaf.shape = tensor.sizes().vec();
  leaf.options = at::TensorOptions(tensor.scalar_type()).device(tensor.device());
  if (at::isFloatingType(tensor.scalar_type())) {
    tensor.set_requires_grad(true);
    leaf.edge = torch::autograd::impl::gradient_edge(tensor);
  }
  return leaf;
}

void LayerGraph::TakeRoots(const std::vector<at::Tensor>& output_gradients, edge_list& roots,
                           variable_list& root_gradients) {
  SIPHON_CHECK(output_gradients.size() == outputs_.size(), "every output has a gradient's place");
  for (size_t output = 0; output < outputs_.size(); ++output) {
    if (!outputs_[output].is_valid()) continue;  // an integer, or made of nothing with a gradient
    roots.push_back(std::move(outputs_[output]));
    root_gradients.push_back(output_gradients[output]);
  }
}

std::vector<at::Tensor> LayerGraph::Collect(const std::vector<Leaf>& leaves, variable_list& found,
                                            size_t& next) {
  std::vector<at::Tensor> gradients;
  for (const Leaf& leaf : leaves) {
    at::Tensor gradient;
    if (leaf.edge.is_valid()) {
      gradient = std::exchange(found[next++], at::Tensor());
      gradient =
          gradient.defined() ? ContiguousAligned(gradient) : at::zeros(leaf.shape, leaf.options);
    }
    gradients.push_back(std::move(gradient));
  }
  return gradients;
}

LayerGraph::Gradients LayerGraph::Backward(const std::vector<at::Tensor>& output_gradients) && {
  edge_list roots;
  variable_list root_gradients;
  TakeRoots(output_gradients, roots, root_gradients);
  edge_list ends;
  AppendEdges(inputs_, ends);
  AppendEdges(parameters_, ends);
  variable_list found = RunGraph(roots, root_gradients, ends, AfterRun::kFree);
  size_t next = 0;
  Gradients gradients;
  gradients.inputs = Collect(inputs_, found, next);
  gradients.parameters = Collect(parameters_, found, next);
  return gradients;
}

LayerGraph::InputHalf LayerGraph::BackwardInput(
    const std::vector<at::Tensor>& output_gradients) && {
  ParameterLeaves leaves;
  for (const Leaf& leaf : parameters_) {
    if (leaf.edge.is_valid()) leaves.insert(leaf.edge.function.get());
  }
  edge_list roots;
  variable_list root_gradients;
  TakeRoots(output_gradients, roots, root_gradients);
  const GraphNodes nodes = FindParameterOperators(roots, leaves);
  edge_list ends;
  AppendEdges(inputs_, ends);
  const size_t first_operator = ends.size();
  AppendOutputs(nodes.operators, ends);
  variable_list found = RunGraph(roots, root_gradients, ends, AfterRun::kKeep);

  InputHalf half;
  half.weights.parameters_ = std::move(parameters_);
  for (size_t end = first_operator; end < ends.size(); ++end) {
    if (found[end].defined()) half.weights.PutOff(ends[end], found[end]);
  }
  for (size_t root = 0; root < roots.size(); ++root) {  // a layer that returns a parameter itself
    if (!IsParameter(*roots[root].function, leaves)) continue;
    half.weights.PutOff(roots[root], root_gradients[root]);
  }
  KeepOperatorsOnly(nodes, leaves);
  size_t next = 0;
  half.inputs = Collect(inputs_, found, next);
  return half;
}

void LayerGraph::WeightHalf::PutOff(const Edge& place, const at::Tensor& gradient) {
  operators_.push_back(place);
  gradients_.push_back(gradient);
}

std::vector<at::Tensor> LayerGraph::WeightHalf::Compute() && {
  edge_list ends;
  AppendEdges(parameters_, ends);
  variable_list found = RunGraph(operators_, gradients_, ends, AfterRun::kFree);
  operators_.clear();
  gradients_.clear();
  size_t next = 0;
  return Collect(parameters_, found, next);
}

LayerPass LayerPass::Train(const Function& function, const std::vector<at::Tensor>& parameters,
                           const std::vector<at::Tensor>& inputs, InputGradients input_gradients) {
  const at::AutoGradMode recording(true);
  LayerPass pass;
  std::vector<at::Tensor> leaves = inputs;
  for (at::Tensor& leaf : leaves) {
    if (input_gradients == InputGradients::kWanted) {
      pass.graph.inputs_.push_back(LayerGraph::MakeLeaf(leaf));
    } else {
      leaf = leaf.detach();
      pass.graph.inputs_.emplace_back();
    }
  }
  std::vector<at::Tensor> parameter_leaves = parameters;
  for (at::Tensor& leaf : parameter_leaves) {
    pass.graph.parameters_.push_back(LayerGraph::MakeLeaf(leaf));
  }
  pass.outputs = ContiguousOutputs(function(parameter_leaves, leaves));
  for (at::Tensor& output : pass.outputs) {
    pass.graph.outputs_.push_back(output.requires_grad()
                                      ? torch::autograd::impl::gradient_edge(output)
                                      : torch::autograd::Edge());
    output = output.detach();
  }
  pass.leaves = std::move(leaves);
  return pass;
}

void LayerPass::ReleaseInputs() {
  for (at::Tensor& leaf : leaves) {
    if (leaf.requires_grad()) leaf.set_data(at::empty({0}, leaf.options()));
  }
  leaves.clear();
}

LayerPass LayerPass::Evaluate(const Function& function, const std::vector<at::Tensor>& parameters,
                              const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard not_recording;
  LayerPass pass;
  pass.outputs = ContiguousOutputs(function(parameters, inputs));
  return pass;
}

}  // namespace siphon
