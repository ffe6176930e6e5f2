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
  struct Gradients {
    std::vector<at::Tensor>
        inputs;  // contiguous, aligned; undefined for integers and at the model's first layer
    std::vector<at::Tensor> parameters;  // contiguous
  };

  LayerGraph() = default;
  LayerGraph(LayerGraph&&) = default;
  LayerGraph& operator=(LayerGraph&&) = default;

  // Gradients of what begins the graph, given those of the outputs (those of integer outputs are
  // not looked at). Uses up what the graph saved; callable once.
  Gradients Backward(const std::vector<at::Tensor>& output_gradients) &&;

 private:
  friend struct LayerPass;

  struct Leaf {
    torch::autograd::Edge edge;  // without function: takes no gradient
    std::vector<int64_t> shape;
  };
  static Leaf MakeLeaf(at::Tensor& tensor);

  std::vector<torch::autograd::Edge>
      outputs_;  // not the tensors: those would keep memory that nothing needs
  std::vector<Leaf> inputs_;
  std::vector<Leaf> parameters_;
};

// A layer's forward pass. The functions throw as LibTorch and users' layers do.
struct LayerPass {
  using Function = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& parameters,
                                                         const std::vector<at::Tensor>& inputs)>;
  enum class InputGradients { kWanted, kUnwanted };

  std::vector<at::Tensor> outputs;  // contiguous, aligned, without history
  LayerGraph graph;

  static LayerPass Train(const Function& function, const std::vector<at::Tensor>& parameters,
                         const std::vector<at::Tensor>& inputs, InputGradients input_gradients);
  // The same outputs, and no graph.
  static LayerPass Evaluate(const Function& function, const std::vector<at::Tensor>& parameters,
                            const std::vector<at::Tensor>& inputs);
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_LAYER_GRAPH_H_
