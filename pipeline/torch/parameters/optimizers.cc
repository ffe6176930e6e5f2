#include "pipeline/torch/parameters/optimizers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace siphon {
namespace {

struct OptimizerRow {
  absl::string_view name;
  const OptimizerTraits* traits;
};

constexpr OptimizerRow kOptimizers[] = {
#define SIPHON_OPTIMIZER(name, traits) {name, &traits},
#include "pipeline/torch/parameters/optimizers.def"
#undef SIPHON_OPTIMIZER
};

}  // namespace

std::vector<std::string> KnownOptimizers() {
  std::vector<std::string> names;
  for (const OptimizerRow& row : kOptimizers) names.emplace_back(row.name);
  return names;
}

absl::StatusOr<const OptimizerTraits*> FindOptimizer(absl::string_view name) {
  for (const OptimizerRow& row : kOptimizers) {
    if (row.name == name) return row.traits;
  }
  return absl::NotFoundError(absl::StrCat("unknown optimizer '", name,
                                          "'; known: ", absl::StrJoin(KnownOptimizers(), ", ")));
}

}  // namespace siphon
