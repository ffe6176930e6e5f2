#ifndef SIPHON_PIPELINE_TORCH_LAYER_GRAPH_H_
#define SIPHON_PIPELINE_TORCH_LAYER_GRAPH_H_

#include <functional>
#include <vector>

#include "pipeline/torch/aten.h"

namespace siphon {

// What one layer's forward pass of one microbatch leaves for its backward pass: an autograd graph
// that begins at leaves of its own for the inputs and for this use of each parameter, and ends at
// the outputs. No graph reaches beyond its layer, so where a model is cut into stages cannot change
// a sum's order. Dropping the object frees what the graph saved.
class LayerGraph {
 public:
  class WeightHalf;
  struct InputHalf;
  struct Gradients {
    std::vector<at::Tensor>
        inputs;  // contiguous, aligned; undefined for integers and at the model's first layer
    std::vector<at::Tensor> parameters;  // contiguous
  };

  // Whether the graph keeps that input's memory, saved or not: its leaf does.
  bool HoldsInput(size_t input) const { return inputs_[input].edge.is_valid(); }

  LayerGraph() = default;
  LayerGraph(LayerGraph&&) = default;
  LayerGraph& operator=(LayerGraph&&) = default;

  // Gradients of what begins the graph, given those of the outputs (those of integer outputs are
  // not looked at). Uses up what the graph saved; callable once.
  Gradients Backward(const std::vector<at::Tensor>& output_gradients) &&;

  // The same in two halves, with the same bits: gradients of the inputs now, those of the
  // parameters when the weight half is computed. Runs the graph once, from the outputs to the
  // inputs and to each operator that takes a parameter, notes what arrives at those operators
  // (dY), cuts them out of the graph, and drops the graph. Until the weight half is computed there
  // stay dY and what such an operator saved for its own backward (x of a linear layer; x, mean and
  // deviation of a layer norm; ids of an embedding), whoever wrote the layer. What computes
  // parameters from parameters (a normalised weight, say) has its dY made by the operator that uses
  // the result, in the input half; so has an operator of the user's own that computes both
  // gradients at once, and computes them twice.
  InputHalf BackwardInput(const std::vector<at::Tensor>& output_gradients) &&;

 private:
  friend struct LayerPass;

  struct Leaf {
    torch::autograd::Edge edge;  // without function: takes no gradient
    std::vector<int64_t> shape;
    at::TensorOptions options;
  };
  static Leaf MakeLeaf(at::Tensor& tensor);
  // Gradients of `leaves` from what the engine found for their valid edges, from `found[next]` on.
  // What the outputs do not depend on has a gradient of zeros rather than none, so that it is the
  // same within a stage and across the boundary of two.
  static std::vector<at::Tensor> Collect(const std::vector<Leaf>& leaves,
                                         torch::autograd::variable_list& found, size_t& next);
  // Removes the outputs' edges and puts those that take a gradient into `roots`.
  void TakeRoots(const std::vector<at::Tensor>& output_gradients, torch::autograd::edge_list& roots,
                 torch::autograd::variable_list& root_gradients);

  std::vector<torch::autograd::Edge>
      outputs_;  // not the tensors: those would keep memory that nothing needs
  std::vector<Leaf> inputs_;
  std::vector<Leaf> parameters_;
};

// What is left to do for the parameters of one layer and microbatch: operators that take them, each
// cut off from the others, and the gradients of the operators' results.
class LayerGraph::WeightHalf {
 public:
  WeightHalf() = default;
  WeightHalf(WeightHalf&&) = default;
  WeightHalf& operator=(WeightHalf&&) = default;

  // As Gradients::parameters. Uses up what the operators saved; callable once.
  std::vector<at::Tensor> Compute() &&;

 private:
  friend class LayerGraph;
  void PutOff(const torch::autograd::Edge& place, const at::Tensor& gradient);

  torch::autograd::edge_list operators_;
  torch::autograd::variable_list gradients_;  // of the same places
  std::vector<Leaf> parameters_;
};

struct LayerGraph::InputHalf {
  std::vector<at::Tensor> inputs;  // as Gradients::inputs
  WeightHalf weights;
};

// A layer's forward pass. The functions throw as LibTorch and users' layers do.
struct LayerPass {
  using Function = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& parameters,
                                                         const std::vector<at::Tensor>& inputs)>;
  enum class InputGradients { kWanted, kUnwanted };

  std::vector<at::Tensor> outputs;  // contiguous, aligned, without history
  LayerGraph graph;
  std::vector<at::Tensor> leaves;  // the inputs as the graph has them; empty without a graph

  // From now on the graph holds nothing of its inputs but what its operators saved.
  void ReleaseInputs();

  static LayerPass Train(const Function& function, const std::vector<at::Tensor>& parameters,
                         const std::vector<at::Tensor>& inputs, InputGradients input_gradients);
  // The same outputs, and no graph.
  static LayerPass Evaluate(const Function& function, const std::vector<at::Tensor>& parameters,
                            const std::vector<at::Tensor>& inputs);
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_LAYER_GRAPH_H_
