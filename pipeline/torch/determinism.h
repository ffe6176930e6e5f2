#ifndef SIPHON_PIPELINE_TORCH_DETERMINISM_H_
#define SIPHON_PIPELINE_TORCH_DETERMINISM_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace siphon {

// Whether LibTorch may take algorithms whose results differ from run to run (sums in the order in
// which threads come, mostly on devices).
enum class Determinism { kNotRequired, kRequired };

// For all threads of the process, from now on. With kRequired, LibTorch takes deterministic
// algorithms, and an operator that has none throws.
void SetDeterminism(Determinism determinism);

// What the operator that refused is called, where `error` is LibTorch's message that it has no
// deterministic algorithm.
std::optional<std::string> OperatorWithoutDeterminism(absl::string_view error);

// "put_ has no deterministic algorithm; ...": the user's line about it.
std::string NoDeterminismText(absl::string_view operation);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_DETERMINISM_H_
