#include "planner/memory_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/numeric/int128.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr std::array<absl::string_view, kGroupKinds> kGroupKindNames = {
    "activations", "parameters", "gradients", "optimizer_state", "weight_versions"};
constexpr std::array<absl::string_view, kPlacements> kPlacementNames = {
    "keep", "recompute", "d2d_swap", "host_swap", "nvme_swap"};

}  // namespace

absl::string_view GroupKindName(GroupKind kind) {
  return kGroupKindNames[static_cast<size_t>(kind)];
}

bool IsPassing(GroupKind kind) {
  return kind == GroupKind::kActivations || kind == GroupKind::kWeightVersions;
}

absl::string_view PlacementName(Placement placement) {
  return kPlacementNames[static_cast<size_t>(placement)];
}

bool IsSwap(Placement placement) {
  return placement != Placement::kKeep && placement != Placement::kRecompute;
}

DeviceMapping IdentityMapping(int workers) {
  DeviceMapping mapping;
  for (int worker = 0; worker < workers; ++worker) mapping.device_of_worker.emplace_back(worker);
  return mapping;
}

std::vector<Stripe> CutStripes(Bytes bytes, const std::vector<LenderWeight>& weights,
                               Bytes granule) {
  absl::int128 all = 0;
  for (const LenderWeight& weight : weights) all += weight.weight;
  SIPHON_CHECK(all > 0 && granule > Bytes(0), "stripes have weights and a granule");
  const int64_t granules = bytes.value / granule.value;
  std::vector<Stripe> stripes;
  absl::int128 weight_so_far = 0;
  int64_t cut = 0;
  for (const LenderWeight& weight : weights) {
    weight_so_far += weight.weight;
    const auto end = static_cast<int64_t>(granules * weight_so_far / all);
    const Bytes size = granule * (end - cut);
    cut = end;
    if (size > Bytes(0)) stripes.push_back({weight.lender, size});
  }
  const Bytes rest = bytes - granule * granules;
  if (rest == Bytes(0)) return stripes;
  if (stripes.empty()) {
    const auto widest = std::max_element(
        weights.begin(), weights.end(),
        [](const LenderWeight& a, const LenderWeight& b) { return a.weight < b.weight; });
    return {{widest->lender, rest}};
  }
  stripes.back().bytes += rest;
  return stripes;
}

int CopiesOf(GroupKind kind, const LiveCopies& live) {
  if (kind == GroupKind::kActivations) return live.microbatches;
  return kind == GroupKind::kWeightVersions ? live.weight_versions : 1;
}

Bytes BytesWith(const MemoryPlan& plan, Placement placement, const std::vector<LiveCopies>& live) {
  Bytes total;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    for (const auto& [group, choice] : plan.stages[stage].groups) {
      if (choice.placement == placement) total += group.bytes * CopiesOf(group.kind, live[stage]);
    }
  }
  return total;
}

}  // namespace siphon
