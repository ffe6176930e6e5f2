#include "planner/memory/group_memory.h"

namespace siphon {

MemoryKind MemoryKindOf(GroupKind kind) {
  switch (kind) {
    case GroupKind::kActivations:
      return MemoryKind::kActivations;
    case GroupKind::kParameters:
      return MemoryKind::kParameters;
    case GroupKind::kGradients:
      return MemoryKind::kGradients;
    case GroupKind::kOptimizerState:
      return MemoryKind::kOptimizer;
    case GroupKind::kWeightVersions:
      return MemoryKind::kWeightVersions;
  }
  return MemoryKind::kActivations;
}

}  // namespace siphon
