#ifndef SIPHON_PIPELINE_TORCH_FIRST_TENSORS_H_
#define SIPHON_PIPELINE_TORCH_FIRST_TENSORS_H_

#include <vector>

#include "absl/status/status.h"
#include "pipeline/torch/aten.h"
#include "planner/units.h"

namespace siphon {

// Which of the tensors that one layer saves are among the first of them, so many bytes together
// (LayerTensors::first). Memory counts once, when a tensor on it is saved first. Only numbers with
// a fraction count, as in profiles; parameters are never asked about.
class FirstTensors {
 public:
  FirstTensors() = default;  // every tensor is
  // `bytes` 0: likewise.
  explicit FirstTensors(Bytes bytes) : bytes_(bytes) {}

  // Whether the tensor, which the layer saves next, is one of them.
  bool Take(const at::Tensor& tensor);
  // After the layer's forward pass: InvalidArgument where they are not so many bytes.
  absl::Status Check() const;

 private:
  struct Seen {
    // Weak: what is not one of them may go, but its address must not come again meanwhile.
    c10::weak_intrusive_ptr<c10::StorageImpl> memory;
    bool is_first;
  };

  Bytes bytes_;
  Bytes taken_;
  bool all_taken_ = false;
  std::vector<Seen> seen_;  // of a layer: some twenty
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_FIRST_TENSORS_H_
