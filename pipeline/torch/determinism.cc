#include "pipeline/torch/determinism.h"

#include <mutex>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/aten.h"

namespace siphon {

void SetDeterminism(Determinism determinism) {
  // LibTorch does not guard its settings, and workers of one process start together.
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  at::Context& context = at::globalContext();
  const bool required = determinism == Determinism::kRequired;
  // cuDNN's attention saves other tensors than plans know; the deterministic setting excludes it.
  // All of this only where it changes: other threads may be computing.
  if (context.userEnabledCuDNNSDP()) context.setSDPUseCuDNN(false);
  if (context.deterministicAlgorithms() == required) return;
  // It would fill every new tensor, a pass over memory, for layers that read what nobody wrote.
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicAlgorithms(required, /*warn_only=*/false);
}

std::optional<std::string> OperatorWithoutDeterminism(absl::string_view error) {
  constexpr absl::string_view kRefusal = " does not have a deterministic implementation";
  const size_t end = error.find(kRefusal);
  if (end == absl::string_view::npos) return std::nullopt;
  const size_t before = error.rfind('\n', end);
  const size_t begin = before == absl::string_view::npos ? 0 : before + 1;
  return std::string(error.substr(begin, end - begin));
}

std::string NoDeterminismText(absl::string_view operation) {
  return absl::StrCat(operation,
                      " has no deterministic algorithm; compute it another way, or write "
                      "train.deterministic: false, and two runs may differ");
}

}  // namespace siphon
