#include "planner/weight_offload/select_removals.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Operations that run while the weight is away, as two ranges [first, last) of places in the step.
// Between B_k and F_k the step goes on; between F_k and B_k it ends and begins anew.
struct Covered {
  std::pair<int, int> first;
  std::pair<int, int> second;
};

Covered CoveredBy(int layers, int layer, RemovalGap gap) {
  const int backward = layers - 1 - layer;
  const int forward = layers + layer;
  if (gap == RemovalGap::kBackwardToForward) return {{backward + 1, forward}, {0, 0}};
  return {{forward + 1, 2 * layers}, {0, backward}};
}

// Benefit over cost, compared without rounding.
struct Profit {
  int64_t benefit = 0;
  int64_t cost = 1;
  friend bool operator<(const Profit& a, const Profit& b) {
    return absl::int128(a.benefit) * b.cost < absl::int128(b.benefit) * a.cost;
  }
};

class Selection {
 public:
  Selection(const WeightOffloadProblem& problem, Discount discount, Ties ties)
      : problem_(problem),
        discount_(discount),
        ties_(ties),
        layers_(static_cast<int>(problem.layers.size())),
        chosen_(2 * problem.layers.size(), false) {
    for (const Bytes overflow : Overflows(problem)) {
      overflows_.push_back(std::max<int64_t>(overflow.value, 0));
    }
  }

  // Nothing if no removal is of use any more.
  std::optional<Removal> Best() const {
    Profit best_profit;
    std::optional<Removal> best;
    for (int place = 0; place < layers_; ++place) {
      const int layer = ties_ == Ties::kFirstLayer ? place : layers_ - 1 - place;
      for (const RemovalGap gap :
           {RemovalGap::kForwardToBackward, RemovalGap::kBackwardToForward}) {
        if (chosen_[IndexOf({layer, gap})] || problem_.layers[layer].weight.value == 0) continue;
        const Profit profit = ProfitOf({layer, gap});
        if (!(best_profit < profit)) continue;
        best_profit = profit;
        best = Removal{layer, gap};
      }
    }
    return best;
  }

  void Choose(const Removal& removal) {
    chosen_[IndexOf(removal)] = true;
    const int64_t weight = problem_.layers[removal.layer].weight.value;
    ForCovered(removal, [&](int operation) {
      overflows_[operation] = std::max<int64_t>(overflows_[operation] - weight, 0);
    });
  }

 private:
  template <typename Fn>
  void ForCovered(const Removal& removal, const Fn& fn) const {
    const Covered covered = CoveredBy(layers_, removal.layer, removal.gap);
    for (const auto& [first, last] : {covered.first, covered.second}) {
      for (int operation = first; operation < last; ++operation) fn(operation);
    }
  }

  Profit ProfitOf(const Removal& removal) const {
    const int64_t weight = problem_.layers[removal.layer].weight.value;
    Profit profit;
    ForCovered(removal,
               [&](int operation) { profit.benefit += std::min(overflows_[operation], weight); });
    const Removal other = {removal.layer, removal.gap == RemovalGap::kForwardToBackward
                                              ? RemovalGap::kBackwardToForward
                                              : RemovalGap::kForwardToBackward};
    const bool halved = discount_ == Discount::kUse && chosen_[IndexOf(other)];
    profit.cost = halved ? weight : 2 * weight;
    return profit;
  }

  static size_t IndexOf(const Removal& removal) {
    return 2 * static_cast<size_t>(removal.layer) +
           (removal.gap == RemovalGap::kForwardToBackward ? 1 : 0);
  }

  const WeightOffloadProblem& problem_;
  const Discount discount_;
  const Ties ties_;
  const int layers_;
  std::vector<int64_t> overflows_;  // [operation], in bytes, not below 0
  std::vector<bool> chosen_;        // [IndexOf]
};

}  // namespace

absl::StatusOr<std::vector<Removal>> SelectRemovals(const WeightOffloadProblem& problem,
                                                    Discount discount, Ties ties) {
  SIPHON_RETURN_IF_ERROR(CheckWeightOffloadProblem(problem));
  Selection selection(problem, discount, ties);
  std::vector<Removal> removals;
  while (const std::optional<Removal> best = selection.Best()) {
    removals.push_back(*best);
    selection.Choose(*best);
  }
  return removals;
}

}  // namespace siphon
