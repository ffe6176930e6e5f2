#ifndef SIPHON_PIPELINE_TORCH_REMADE_TENSORS_H_
#define SIPHON_PIPELINE_TORCH_REMADE_TENSORS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/graphs/first_tensors.h"
#include "pipeline/torch/graphs/saved_tensors.h"
#include "planner/units.h"

namespace siphon {

// What the operators of one layer save of one microbatch, not there until the layer is computed
// again: the first forward pass leaves a graph whose operators hold empty places, in the order of
// saving, and the second one puts into each place what it saves at that place. The graph of the
// first is the one that the backward runs. Parameters, which stay anyway, are kept as they are, and
// so is what is not to be dropped.
//
// Thread-safety: one thread.
class RemadeTensors {
 public:
  // How far the layer is computed again.
  enum class Extent {
    kWhole,      // its output is wanted
    kLastSaved,  // until the last tensor is there that its backward reads; then the sink throws
  };

  RemadeTensors();
  ~RemadeTensors();
  RemadeTensors(RemadeTensors&&) noexcept;
  RemadeTensors& operator=(RemadeTensors&&) noexcept;

  // Where tensors go that the first pass saves; holds until the pass is done. `parameters` are the
  // layer's; `bytes`: only what it saves first is dropped, so many together; 0: all.
  SavedTensorSink* FirstPass(const std::vector<at::Tensor>& parameters, Bytes bytes);
  // What is dropped.
  const FirstTensors& first() const { return dropped_; }

  // The same for the pass that computes the layer again.
  SavedTensorSink* SecondPass(Extent extent);
  // Whether that pass can be left out: no place waits for a tensor, unless the output is wanted.
  bool IsComplete() const;
  // What became of the second pass, of which `pass` is what the layer itself said: OK once every
  // place has its tensor, however the pass ended; `pass` where that is an error of its own;
  // InvalidArgument where the layer saved other tensors than the first time.
  absl::Status CheckSecondPass(absl::Status pass) const;

 private:
  struct Place;
  class Kept;
  class First;
  class Second;

  FirstTensors dropped_;
  std::vector<std::shared_ptr<Place>> places_;  // in the order of saving; the graph has them too
  std::unique_ptr<First> first_;
  std::unique_ptr<Second> second_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_REMADE_TENSORS_H_
