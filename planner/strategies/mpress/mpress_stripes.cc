#include "planner/strategies/mpress/mpress_stripes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace siphon {
namespace {

// A link without a limit counts like one of this rate.
constexpr int64_t kFastest = 1'000'000'000'000;

int64_t RateOf(const Lender& lender) {
  return lender.rate > BytesPerSecond(0) ? lender.rate.value : kFastest;
}

// What a lender can take of one copy, in whole granules.
Bytes RoomOf(const Lender& lender, const StripedTensor& tensor, Bytes granule) {
  const int64_t granules = std::max<int64_t>(0, lender.spare.value) / tensor.copies / granule.value;
  return granule * granules;
}

std::optional<std::vector<Stripe>> OnOne(const StripedTensor& tensor,
                                         const std::vector<Lender>& lenders) {
  const Lender* best = nullptr;
  for (const Lender& lender : lenders) {
    if (lender.spare < tensor.bytes * tensor.copies) continue;
    const auto rank = [](const Lender& of) { return std::make_pair(RateOf(of), of.spare); };
    if (best == nullptr || rank(*best) < rank(lender)) best = &lender;
  }
  if (best == nullptr) return std::nullopt;
  return std::vector<Stripe>{{best->device, tensor.bytes}};
}

std::vector<Stripe> Cut(Bytes bytes, const std::vector<Lender>& lenders, CopyEngines engines,
                        Bytes granule) {
  std::vector<LenderWeight> weights;
  for (const Lender& lender : lenders) {
    const bool equal = engines == CopyEngines::kOneForAllPeers;
    weights.push_back({lender.device, equal ? 1 : RateOf(lender)});
  }
  return CutStripes(bytes, weights, granule);
}

Bytes Sum(const std::vector<Stripe>& stripes) {
  Bytes sum;
  for (const Stripe& stripe : stripes) sum += stripe.bytes;
  return sum;
}

}  // namespace

std::optional<std::vector<Stripe>> StripesWithin(const StripedTensor& tensor,
                                                 std::vector<Lender> lenders, CopyEngines engines,
                                                 MpressStriping striping, Bytes granule) {
  if (striping == MpressStriping::kOneLender) return OnOne(tensor, lenders);
  std::vector<Stripe> full;
  while (!lenders.empty()) {
    const std::vector<Stripe> cut = Cut(tensor.bytes - Sum(full), lenders, engines, granule);
    // Fills those that get more than they have room for, and shares the rest anew.
    const auto overflows = [&](const Lender& lender) {
      return std::any_of(cut.begin(), cut.end(), [&](const Stripe& stripe) {
        return stripe.lender == lender.device && stripe.bytes * tensor.copies > lender.spare;
      });
    };
    const auto first_full = std::stable_partition(
        lenders.begin(), lenders.end(), [&](const Lender& lender) { return !overflows(lender); });
    if (first_full == lenders.end()) {
      full.insert(full.end(), cut.begin(), cut.end());
      std::sort(full.begin(), full.end(),
                [](const Stripe& a, const Stripe& b) { return a.lender < b.lender; });
      return full;
    }
    for (auto lender = first_full; lender != lenders.end(); ++lender) {
      const Bytes room = std::min(RoomOf(*lender, tensor, granule), tensor.bytes - Sum(full));
      if (room > Bytes(0)) full.push_back({lender->device, room});
    }
    lenders.erase(first_full, lenders.end());
  }
  return std::nullopt;
}

}  // namespace siphon
