#ifndef SIPHON_PLANNER_MODELS_BACKWARD_WALK_H_
#define SIPHON_PLANNER_MODELS_BACKWARD_WALK_H_

#include <vector>

#include "planner/models/layer_tape.h"

namespace siphon {

enum class BackwardKind {
  kWhole,  // frees what was saved as it goes, and makes the parameters' gradients
  kInput,  // keeps what was saved, and what arrives at operations with parameters
};

// A layer's operations in reverse: moments of its memory beyond what was saved and the gradient of
// the output.
class BackwardWalk {
 public:
  BackwardWalk(const LayerTape& tape, LayerTape::Value output, BackwardKind kind);

  std::vector<WorkspaceMoment> TakeMoments() { return std::move(moments_); }
  // Gradients that arrived at operations with parameters; each memory once.
  std::vector<SavedTensorSpec> TakeQueued() { return std::move(queued_); }

 private:
  using Operation = LayerTape::Operation;
  struct GradientBlock {
    WorkspaceMoment size;
    int holders = 0;
    bool queued = false;
  };

  void Run(int index);
  // The gradient of the operation's only result, or of its first: the others are released with it.
  void Queue(const Operation& operation);
  void MakeInputGradients(const Operation& operation);
  void ReleaseOutputGradients(const Operation& operation);
  void FreeSavedBy(int index);
  // `block` arrives as a gradient of `value`, and is added to what is there.
  void Arrive(LayerTape::Value value, int block);
  int NewGradient(const std::vector<int64_t>& shape);
  void Free(const WorkspaceMoment& size);
  void Release(int block);
  void Note(Bytes tile);

  const LayerTape& tape_;
  const BackwardKind kind_;
  std::vector<GradientBlock> gradients_;
  std::vector<int> gradient_of_;  // by value; -1: none yet
  WorkspaceMoment now_;           // parameters' gradients included
  std::vector<WorkspaceMoment> moments_;
  std::vector<SavedTensorSpec> queued_;
};

// Only moments that are the fullest for some microbatch; at most one that holds nothing.
std::vector<WorkspaceMoment> FullestMoments(std::vector<WorkspaceMoment> moments);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MODELS_BACKWARD_WALK_H_
