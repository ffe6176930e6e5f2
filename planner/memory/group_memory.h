#ifndef SIPHON_PLANNER_MEMORY_GROUP_MEMORY_H_
#define SIPHON_PLANNER_MEMORY_GROUP_MEMORY_H_

#include "planner/memory/memory_kind.h"
#include "planner/memory_plan.h"

namespace siphon {

// What tensors of a group of that kind count as.
MemoryKind MemoryKindOf(GroupKind kind);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_GROUP_MEMORY_H_
