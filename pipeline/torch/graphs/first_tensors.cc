#include "pipeline/torch/graphs/first_tensors.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace siphon {

bool FirstTensors::Take(const at::Tensor& tensor) {
  if (bytes_ == Bytes(0)) return true;
  if (!tensor.is_floating_point()) return false;
  const c10::Storage& storage = tensor.storage();
  const auto seen = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& each) {
    return each.memory._unsafe_get_target() == storage.unsafeGetStorageImpl();
  });
  if (seen != seen_.end()) return seen->is_first;
  const Bytes size(static_cast<int64_t>(storage.nbytes()));
  if (size > bytes_ - taken_) all_taken_ = true;
  if (!all_taken_) taken_ += size;
  seen_.push_back({storage.getWeakStorageImpl(), !all_taken_});
  return !all_taken_;
}

absl::Status FirstTensors::Check() const {
  if (taken_ == bytes_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the layer saves other tensors for its backward than its plan has: of what it saves first, ",
      bytes_.value, " bytes are to leave, but its tensors up to there have ", taken_.value,
      "; profile the model again"));
}

}  // namespace siphon
