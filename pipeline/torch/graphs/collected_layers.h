#ifndef SIPHON_PIPELINE_TORCH_COLLECTED_LAYERS_H_
#define SIPHON_PIPELINE_TORCH_COLLECTED_LAYERS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipeline/stage_compute.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/graphs/first_tensors.h"
#include "pipeline/torch/graphs/saved_tensors.h"
#include "planner/stage_partition.h"

namespace siphon {

// Memory that operators have saved tensors on; see collected_layers.cc.
struct SavedMemory;

// What groups of consecutive layers of one stage save of one microbatch, all of it or what one
// layer saves first, as memory that can be freed and taken again while the graphs stay as they are:
// the storages of the saved tensors are emptied and filled in place, so that each tensor comes back
// as the view that it was, and what several operators save is there once. Parameters and data,
// which are not the layers' own, stay; everything else goes that plans count, single numbers too.
//
// A storage on which several layers have saved tensors goes with the group of the last of them,
// whose backward comes first, or stays where that is in none. One that somebody else holds too
// stays: a dropped layer's input, a boundary that is still being sent (until RetryFree finds it
// released).
//
// Layers are numbered as in the model. Thread-safety: one thread. What takes memory throws as
// LibTorch does.
class CollectedLayers {
 public:
  CollectedLayers();
  ~CollectedLayers();
  CollectedLayers(CollectedLayers&&) noexcept;
  CollectedLayers& operator=(CollectedLayers&&) noexcept;

  // FailedPrecondition where one of them is in a group.
  absl::Status CheckNotCollected(StageRange layers) const;
  // A group from now on. Errors: as CheckNotCollected.
  absl::Status Add(const LayerTensors& tensors);
  // Of the group that has tensors of the layer, which of them; null for none.
  const FirstTensors* FirstOf(int layer) const;

  // For the forward pass of a layer, in a group or not: where its saved tensors go; null while
  // there are no groups. `parameters` are the layer's, `device` is where it computes; the sink
  // holds until the next call.
  SavedTensorSink* SinkOf(int layer, const std::vector<at::Tensor>& parameters, at::Device device);
  // A graph that is kept holds this layer input beside what it saved.
  void HeldByGraph(const at::Tensor& input);
  // The forward pass of `layer` is done. The groups that it completes, ascending: one whose last
  // layer it is, unless the layer behind takes an output that the group has saved; such a one is
  // complete behind that layer. `is_last`: of the stage.
  std::vector<StageRange> Complete(int layer, const std::vector<at::Tensor>& outputs, bool is_last);
  // The group whose last layer it is; null for none.
  const StageRange* EndingAt(int layer) const;

  // As StageCompute's SavedTensors, FreeSaved and RefillSaved, for groups that are complete.
  absl::StatusOr<TensorSpans> Memory(StageRange layers) const;
  absl::Status Free(StageRange layers);
  absl::StatusOr<TensorSpans> Refill(StageRange layers);
  // Frees what had to wait because somebody else held it.
  void RetryFree();

 private:
  struct Group;
  class Sink;

  Group* FindGroup(int layer) const;  // null for none
  absl::StatusOr<Group*> FindComplete(StageRange layers) const;

  std::vector<std::unique_ptr<Group>> groups_;
  // By storage; those that nobody needs any more are replaced when their address is.
  absl::flat_hash_map<const c10::StorageImpl*, std::shared_ptr<SavedMemory>> memory_;
  std::unique_ptr<Sink> sink_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_COLLECTED_LAYERS_H_
