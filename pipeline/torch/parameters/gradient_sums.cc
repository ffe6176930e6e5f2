#include "pipeline/torch/parameters/gradient_sums.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Elements that a gradient of 16 bits is widened in at a time, on the stack: a whole copy in
// float32 would be the fullest moment of many backwards.
constexpr int64_t kWidened = 4096;

// Adds a gradient to a float32 sum, element by element in float32.
void AddWide(const at::Tensor& gradient, at::Tensor& sum) {
  // A device's kernels widen as they add.
  if (gradient.scalar_type() == sum.scalar_type() || !sum.device().is_cpu()) {
    sum.add_(gradient);
    return;
  }
  alignas(kTensorAlignment) float widened[kWidened];
  const at::Tensor from = gradient.view({-1});  // contiguous, as LayerGraph gives it
  const at::Tensor to = sum.view({-1});
  for (int64_t begin = 0; begin < from.numel(); begin += kWidened) {
    const int64_t count = std::min(kWidened, from.numel() - begin);
    const at::Tensor wide = at::from_blob(widened, {count}, at::kFloat);
    wide.copy_(from.narrow(0, begin, count));
    to.narrow(0, begin, count).add_(wide);
  }
}

}  // namespace

void AddMicrobatch(const at::Tensor& gradient, HeldParameter::Use& use) {
  if (use.microbatches > 0) {
    AddWide(gradient, use.gradient);
  } else {
    use.gradient.copy_(gradient);
  }
  ++use.microbatches;
}

absl::Status AddSharedUses(HeldParameter& held) {
  if (held.total.defined()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the shared gradients of ", held.name, " were added already"));
  }
  for (const HeldParameter::Use& use : held.uses) {
    if (use.here ? use.microbatches > 0 : use.gradient.defined()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the shared gradient of ", held.name, " in layer ", use.place.layer, " is not there"));
  }
  // Into memory of its own: the stage's own gradient may still be on its way to other stages.
  held.total = at::add(held.uses[0].gradient, held.uses[1].gradient);
  for (size_t use = 2; use < held.uses.size(); ++use) held.total.add_(held.uses[use].gradient);
  for (HeldParameter::Use& use : held.uses) {
    if (!use.here) use.gradient.reset();
  }
  return absl::OkStatus();
}

absl::StatusOr<at::Tensor> TotalGradient(HeldParameter& held) {
  if (held.total.defined()) return held.total;
  if (held.shared) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the gradients of ", held.name,
        ", which several stages use, have to be added before the norm and the update"));
  }
  for (const HeldParameter::Use& use : held.uses) {
    if (use.microbatches > 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("no backward pass has reached ", held.name, " in layer ", use.place.layer));
  }
  SIPHON_RETURN_IF_ERROR(CheckMemory(held.uses[0].gradient, "gradient", held.name));
  for (size_t use = 1; use < held.uses.size(); ++use) {
    held.uses[0].gradient.add_(held.uses[use].gradient);
  }
  held.total = held.uses[0].gradient;
  return held.total;
}

void ForgetGradients(HeldParameter& held) {
  held.total.reset();
  for (HeldParameter::Use& use : held.uses) {
    use.microbatches = 0;
    if (!use.here) use.gradient.reset();
  }
}

}  // namespace siphon
