#include "planner/baselines/memory_baseline.h"

#include "planner/baselines/virtual_memory_step.h"
#include "planner/baselines/zero_step.h"

namespace siphon {

const std::vector<MemoryBaseline>& MemoryBaselines() {
#define SIPHON_BASELINE(name, function, help) {name, help, function},
  static const auto* const baselines = new std::vector<MemoryBaseline>{
#include "planner/baselines/baselines.def"
  };
#undef SIPHON_BASELINE
  return *baselines;
}

}  // namespace siphon
