#include "pipeline/torch/layer_graph.h"

#include <utility>

#include "pipeline/torch/tensor_bytes.h"
#include "planner/status.h"

namespace siphon {
namespace {

std::vector<at::Tensor> ContiguousOutputs(std::vector<at::Tensor> outputs) {
  for (at::Tensor& output : outputs) {
    TORCH_CHECK(output.defined(), "the layer returned an undefined tensor");
    output = ContiguousAligned(output);
  }
  return outputs;
}

}  // namespace

LayerGraph::Leaf LayerGraph::MakeLeaf(at::Tensor& tensor) {
  tensor = tensor.detach();  // shares memory; has no history
  Leaf leaf;
  leaf.shape = tensor.sizes().vec();
  if (at::isFloatingType(tensor.scalar_type())) {
    tensor.set_requires_grad(true);
    leaf.edge = torch::autograd::impl::gradient_edge(tensor);
  }
  return leaf;
}

LayerGraph::Gradients LayerGraph::Backward(const std::vector<at::Tensor>& output_gradients) && {
  SIPHON_CHECK(output_gradients.size() == outputs_.size(), "every output has a gradient's place");
  torch::autograd::edge_list roots;
  torch::autograd::variable_list root_gradients;
  for (size_t output = 0; output < outputs_.size(); ++output) {
    if (!outputs_[output].is_valid()) continue;  // an integer, or made of nothing with a gradient
    roots.push_back(std::move(outputs_[output]));
    root_gradients.push_back(output_gradients[output]);
  }
  torch::autograd::edge_list ends;
  for (const std::vector<Leaf>* leaves : {&inputs_, &parameters_}) {
    for (const Leaf& leaf : *leaves) {
      if (leaf.edge.is_valid()) ends.push_back(leaf.edge);
    }
  }
  torch::autograd::variable_list found;
  if (!roots.empty() && !ends.empty()) {
    found = torch::autograd::Engine::get_default_engine().execute(
        roots, root_gradients, /*keep_graph=*/false, /*create_graph=*/false,
        /*accumulate_grad=*/false, ends);
  }
  found.resize(ends.size());

  // What the outputs do not depend on has a gradient of zeros rather than none, so that it is the
  // same within a stage and across the boundary of two.
  size_t next = 0;
  const auto collect = [&](const std::vector<Leaf>& leaves) {
    std::vector<at::Tensor> gradients;
    for (const Leaf& leaf : leaves) {
      at::Tensor gradient;
      if (leaf.edge.is_valid()) {
        gradient = std::exchange(found[next++], at::Tensor());
        gradient = gradient.defined() ? ContiguousAligned(gradient) : at::zeros(leaf.shape);
      }
      gradients.push_back(std::move(gradient));
    }
    return gradients;
  };
  Gradients gradients;
  gradients.inputs = collect(inputs_);
  gradients.parameters = collect(parameters_);
  return gradients;
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
  return pass;
}

LayerPass LayerPass::Evaluate(const Function& function, const std::vector<at::Tensor>& parameters,
                              const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard not_recording;
  LayerPass pass;
  pass.outputs = ContiguousOutputs(function(parameters, inputs));
  return pass;
}

}  // namespace siphon
