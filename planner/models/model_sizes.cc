#include "planner/models/model_sizes.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/status.h"
#include "planner/units.h"

namespace siphon {
namespace {

constexpr absl::string_view kActivations[] = {"gelu_new", "gelu", "relu"};

absl::Status BadKey(absl::string_view key, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(key, ": ", problem));
}

absl::Status CheckPositive(absl::string_view key, int64_t value) {
  if (value > 0) return absl::OkStatus();
  return BadKey(key, absl::StrCat(value, " must be positive"));
}

struct Factor {
  absl::string_view key;
  int64_t value;
};

// The product of all factors fits, or the message blames the largest of them.
absl::Status CheckFits(const std::vector<Factor>& factors, absl::string_view what) {
  const auto smaller = [](const Factor& a, const Factor& b) { return a.value < b.value; };
  const Factor& largest = *std::max_element(factors.begin(), factors.end(), smaller);
  const std::string blame = absl::StrCat(largest.key, ": ", largest.value, ": ", what);
  int64_t product = 1;
  for (const Factor& factor : factors) {
    SIPHON_ASSIGN_OR_RETURN(product, CheckedProduct(product, factor.value, blame));
  }
  return absl::OkStatus();
}

// The constants are the largest coefficients in the models' sums, times 4 bytes where bytes are
// meant, rounded up so far that the sum of all these terms stays in 63 bits as well.
absl::Status CheckProducts(const ModelOptions& options) {
  const Factor hidden{"model.hidden", options.hidden};
  const Factor layers{"model.layers", options.layers};
  const Factor vocabulary{"model.vocabulary", options.vocabulary};
  const Factor sequence{"data.sequence_length", options.sequence_length};
  SIPHON_RETURN_IF_ERROR(
      CheckFits({hidden, hidden, {"", 512}, layers}, "the size of all layers' weights"));
  SIPHON_RETURN_IF_ERROR(
      CheckFits({vocabulary, hidden, {"", 64}}, "the size of the token embedding"));
  SIPHON_RETURN_IF_ERROR(
      CheckFits({sequence, hidden, {"", 64}, layers}, "the size of all layers' outputs"));
  SIPHON_RETURN_IF_ERROR(CheckFits({sequence, vocabulary, {"", 64}}, "the size of the logits"));
  SIPHON_RETURN_IF_ERROR(CheckFits({sequence, hidden, hidden, {"", 128}, layers},
                                   "the number of operations of one sample"));
  SIPHON_RETURN_IF_ERROR(CheckFits({sequence, sequence, hidden, {"", 32}, layers},
                                   "the number of operations of one sample's attention"));
  return CheckFits({sequence, hidden, vocabulary, {"", 16}},
                   "the number of operations of one sample's logits");
}

}  // namespace

absl::Status CheckModelSizes(const ModelOptions& options, AttentionHeads heads) {
  SIPHON_RETURN_IF_ERROR(CheckPositive("model.layers", options.layers));
  SIPHON_RETURN_IF_ERROR(CheckPositive("model.hidden", options.hidden));
  SIPHON_RETURN_IF_ERROR(CheckPositive("model.vocabulary", options.vocabulary));
  SIPHON_RETURN_IF_ERROR(CheckPositive("data.sequence_length", options.sequence_length));
  if (options.layers > kMostLayers) {
    return BadKey("model.layers",
                  absl::StrCat(options.layers, " is more than ", kMostLayers, " layers"));
  }
  if (heads == AttentionHeads::kUsed) {
    SIPHON_RETURN_IF_ERROR(CheckPositive("model.heads", options.heads));
    if (options.hidden % options.heads != 0) {
      return BadKey("model.heads",
                    absl::StrCat(options.heads, " does not divide model.hidden ", options.hidden));
    }
  }
  if (!(options.dropout >= 0.0 && options.dropout < 1.0)) {
    return BadKey("model.dropout",
                  absl::StrCat(options.dropout, " must be at least 0 and below 1"));
  }
  if (!options.activation.empty() && std::find(std::begin(kActivations), std::end(kActivations),
                                               options.activation) == std::end(kActivations)) {
    return BadKey("model.activation", absl::StrCat("unknown '", options.activation, "'; known: ",
                                                   absl::StrJoin(kActivations, ", ")));
  }
  return CheckProducts(options);
}

}  // namespace siphon
