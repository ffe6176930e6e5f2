#include "planner/strategies/memory_strategy.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/strategies/renumber_plan.h"
#include "planner/strategies/strategies.h"

namespace siphon {

const std::vector<MemoryStrategy>& MemoryStrategies() {
  static const std::vector<MemoryStrategy> strategies = {
#define SIPHON_MEMORY_STRATEGY(name, help, plan) {name, help, InCanonicalOrder<plan>},
#include "planner/strategies/strategies.def"
#undef SIPHON_MEMORY_STRATEGY
  };
  return strategies;
}

absl::StatusOr<MemoryStrategy> FindMemoryStrategy(absl::string_view name) {
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    if (strategy.name == name) return strategy;
  }
  const std::string known = absl::StrJoin(MemoryStrategies(), ", ",
                                          [](std::string* text, const MemoryStrategy& strategy) {
                                            absl::StrAppend(text, strategy.name);
                                          });
  return absl::NotFoundError(
      absl::StrCat("no memory strategy is called '", name, "'; there are ", known));
}

}  // namespace siphon
