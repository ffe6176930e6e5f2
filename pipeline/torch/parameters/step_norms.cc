#include "pipeline/torch/parameters/step_norms.h"

namespace siphon {

StepNorms::StepNorms(size_t parameters, at::Device device) : noted_(parameters), here_(parameters) {
  if (device.is_cpu()) return;
  on_device_ =
      at::empty({static_cast<int64_t>(parameters)}, at::TensorOptions(at::kFloat).device(device));
}

void StepNorms::Forget() { noted_.assign(noted_.size(), false); }

void StepNorms::Note(size_t parameter, const at::Tensor& gradient) {
  const at::Tensor norm = at::linalg_vector_norm(gradient);
  if (on_device_.defined()) {
    on_device_.select(0, static_cast<int64_t>(parameter)).copy_(norm);
  } else {
    here_[parameter] = norm.item<float>();
  }
  noted_[parameter] = true;
}

std::vector<float> StepNorms::Read() const {
  if (!on_device_.defined() || here_.empty()) return here_;
  const at::Tensor read = on_device_.to(at::kCPU);
  const float* const norms = read.const_data_ptr<float>();
  return {norms, norms + here_.size()};
}

}  // namespace siphon
