#ifndef SIPHON_PLANNER_MODELS_LAYER_TAPE_H_
#define SIPHON_PLANNER_MODELS_LAYER_TAPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/layer_memory.h"
#include "planner/tensor_spec.h"

namespace siphon {

// Writes down the operations of a layer's forward pass, with what each allocates and saves for its
// backward in LibTorch on the CPU, and works out what the layer's passes take. A layer's
// description reads like its LibTorch code. Sizes are of one sample in float32; what has no
// dimensions is one number of the whole microbatch.
//
// A backward runs the operations in reverse, frees what each saved once its last reader ran, keeps
// the gradients of parameters until the end, and adds up gradients that meet: in place where nobody
// else holds one.
class LayerTape {
 public:
  using Value = int;

  // The layer's input. Token ids take no gradient and are the batch's memory, not the layer's.
  Value Input(std::vector<int64_t> shape);
  Value TokenIds(std::vector<int64_t> shape);

  // x; its memory goes by this name when it is saved.
  Value Named(const std::string& name, Value x);

  // Rows of a table [entries, width].
  Value Embedding(const std::string& name, Value ids, int64_t entries, int64_t width);
  // x plus a parameter of so many elements, the same for every sample.
  Value AddParameter(const std::string& name, Value x, int64_t elements);
  // Matrix product over the last dimension, with a bias or without.
  Value Linear(const std::string& name, Value x, int64_t columns, int64_t bias_elements);
  Value LayerNorm(const std::string& name, Value x);
  // "relu" saves its result, the others what they were given.
  Value Activation(const std::string& name, Value x, const std::string& activation);
  // x itself when the probability is 0, else x times a mask.
  Value Dropout(const std::string& name, Value x, double probability);
  Value Add(Value a, Value b);
  // Equal parts of the last dimension that share x's memory; their gradients together make one of
  // x.
  std::vector<Value> Split(Value x, int64_t parts);
  Value MultiplyBatched(const std::string& name, Value a, Value b, std::vector<int64_t> shape);
  Value Scale(Value x);
  // x plus a constant of so many elements, made on the spot.
  Value AddConstant(Value x, int64_t elements);
  Value Softmax(const std::string& name, Value x);
  // The same elements in another order; a copy, also in the backward.
  Value Copy(Value x, std::vector<int64_t> shape);
  // LibTorch's fused attention: [sequence, hidden] each, in heads.
  Value FusedAttention(const std::string& name, Value query, Value key, Value value, int64_t heads);
  // Cross-entropy of logits, summed up to a scalar and divided by the number of targets.
  Value CrossEntropy(Value logits);

  // The layer's code holds x no longer.
  void Forget(Value x);

  // Ends the forward pass, which holds its output and nothing else.
  LayerMemory Finish(Value output);

 private:
  friend class BackwardWalk;

  enum class Gradient { kNone, kNew, kSame };  // of an input: none, memory of its own, the output's
  enum class Reader { kInputGradient, kWeightGradient };

  struct Block {  // memory
    TensorSpec sample;
    bool counted = true;  // false: the input's, or the batch's
    bool saved = false;
    bool kept_for_weights = false;
    SavedPrecision precision = SavedPrecision::kAsComputed;
    std::string name;
    int holders = 0;
    int first_saver = -1;      // operation
    int64_t flops_before = 0;  // when it is saved
  };
  struct View {
    int block = -1;
    std::vector<int64_t> shape;
  };
  struct Operand {
    Value value = -1;
    Gradient gradient = Gradient::kNew;
  };
  struct Operation {
    std::string name;
    std::vector<Operand> inputs;
    std::vector<Value> outputs;
    int64_t parameters = 0;  // elements whose gradients it makes
    Bytes forward_tile;      // whatever the microbatch, while it runs
    Bytes backward_tile;
    int64_t flops = 0;  // as LayerSpec::forward_flops
  };

  // Of memory of that shape: of each sample, or of the microbatch.
  static WorkspaceMoment SizeOfOne(const std::vector<int64_t>& shape);
  int NewBlock(std::vector<int64_t> shape);
  Value NewValue(int block, std::vector<int64_t> shape);
  const std::vector<int64_t>& ShapeOf(Value value) const { return values_[value].shape; }
  int BlockOf(Value value) const { return values_[value].block; }
  // The next operation reads it in its backward.
  void Save(int block, const std::string& name, Reader reader);
  // The newest operation reads what it has made itself.
  void SaveResult(int block, const std::string& name, Reader reader);
  // The same of something that nobody else holds.
  void SaveNew(const std::string& name, std::vector<int64_t> shape, Reader reader,
               SavedPrecision precision);
  void Take(int block);  // it is there from now on
  void Append(Operation operation);
  // The fullest ones until it is through.
  std::vector<WorkspaceMoment> MomentsUntil(int operation) const;
  // An operation with one result, in memory of its own.
  Value AppendUnary(Operation operation, std::vector<int64_t> shape);

  std::vector<Block> blocks_;
  std::vector<View> values_;
  std::vector<Operation> operations_;
  WorkspaceMoment now_;  // of counted blocks that are held or saved
  int64_t flops_ = 0;    // of all operations so far
  std::vector<WorkspaceMoment> forward_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_MODELS_LAYER_TAPE_H_
