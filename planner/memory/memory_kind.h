#ifndef SIPHON_PLANNER_MEMORY_MEMORY_KIND_H_
#define SIPHON_PLANNER_MEMORY_MEMORY_KIND_H_

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"
#include "planner/units.h"

namespace siphon {

// What a worker's memory is used for. Every table, report and curve has these, in this order.
enum class MemoryKind {
  kParameters,
  kGradients,
  kOptimizer,       // moments and, in mixed precision, master weights
  kWeightVersions,  // older weights that asynchronous schedules come back to
  kActivations,     // saved for the backward
  kBoundary,        // tensors between stages, being sent, received or used
  kLent,            // tensors of other workers, parked here
  kWorkspace,       // temporaries inside an operation
  kCommunication,   // rings and other buffers of the transport
  kSlack,           // what an allocator takes beyond the bytes asked for
};
inline constexpr size_t kMemoryKinds = static_cast<size_t>(MemoryKind::kSlack) + 1;

// "parameters", "weight versions", ...
absl::string_view MemoryKindName(MemoryKind kind);
// "parameters", "weight_versions", ...: keys of JSON.
absl::string_view MemoryKindKey(MemoryKind kind);

// Bytes of each kind.
struct MemoryByKind {
  std::array<Bytes, kMemoryKinds> bytes{};
  Bytes& operator[](MemoryKind kind) { return bytes[static_cast<size_t>(kind)]; }
  Bytes operator[](MemoryKind kind) const { return bytes[static_cast<size_t>(kind)]; }
  friend bool operator==(const MemoryByKind&, const MemoryByKind&) = default;
};

Bytes Total(const MemoryByKind& memory);
MemoryByKind operator+(const MemoryByKind& a, const MemoryByKind& b);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_MEMORY_KIND_H_
