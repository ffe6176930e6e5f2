#include "planner/memory/memory_kind.h"

#include "planner/status.h"

namespace siphon {
namespace {

struct KindRow {
  MemoryKind kind;
  absl::string_view name;
  absl::string_view key;
};

constexpr std::array<KindRow, kMemoryKinds> kRows = {{
    {MemoryKind::kParameters, "parameters", "parameters"},
    {MemoryKind::kGradients, "gradients", "gradients"},
    {MemoryKind::kOptimizer, "optimizer", "optimizer"},
    {MemoryKind::kWeightVersions, "weight versions", "weight_versions"},
    {MemoryKind::kActivations, "activations", "activations"},
    {MemoryKind::kBoundary, "boundary", "boundary"},
    {MemoryKind::kLent, "lent", "lent"},
    {MemoryKind::kWorkspace, "workspace", "workspace"},
    {MemoryKind::kCommunication, "communication", "communication"},
    {MemoryKind::kSlack, "slack", "slack"},
}};

const KindRow& RowOf(MemoryKind kind) {
  const KindRow& row = kRows[static_cast<size_t>(kind)];
  SIPHON_CHECK(row.kind == kind, "the rows of kRows stand in the order of MemoryKind");
  return row;
}

}  // namespace

absl::string_view MemoryKindName(MemoryKind kind) { return RowOf(kind).name; }
absl::string_view MemoryKindKey(MemoryKind kind) { return RowOf(kind).key; }

Bytes Total(const MemoryByKind& memory) {
  Bytes total;
  for (const Bytes bytes : memory.bytes) total += bytes;
  return total;
}

MemoryByKind operator+(const MemoryByKind& a, const MemoryByKind& b) {
  MemoryByKind sum = a;
  for (size_t kind = 0; kind < kMemoryKinds; ++kind) sum.bytes[kind] += b.bytes[kind];
  return sum;
}

}  // namespace siphon
