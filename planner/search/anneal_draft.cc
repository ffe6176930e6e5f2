#include "planner/search/anneal_draft.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "planner/search/annealing_cost.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr uint64_t kSeed = 1;
// Of the step time: how much slower changes are taken one time in e at the begin; 0 at the end.
// Where there are simulations enough it is hotter, and begins anew from where it ended: what grew
// cold may have been the wrong valley.
constexpr double kHot = 0.01;
constexpr double kHottest = 0.1;
constexpr int kManySimulations = 2'000;
constexpr int kRounds = 3;
// With neighbours, which takes what single workers gain no more: so little that a worse draft is
// rarely taken, in rounds that each begin from the best one of all.
constexpr double kHotForNeighbours = 0.003;

class Annealer {
 public:
  Annealer(DraftSimulator& simulator, SimulatedDraft start, int simulations, WeightSearch weights,
           AnnealedStages stages)
      : simulator_(simulator),
        first_(simulator.simulations()),
        most_(simulations),
        neighbours_(stages == AnnealedStages::kNeighbours),
        best_(std::move(start)),
        cost_(simulator.problem()),
        dice_(simulator.problem(), best_.draft, weights, stages, kSeed) {}

  absl::StatusOr<SimulatedDraft> Run() {
    DraftPlan now = best_.draft;
    double cost = cost_.Of(best_);
    const double hottest = Hottest() * static_cast<double>(best_.score.step.value);
    double heat = hottest;
    while (simulator_.simulations() - first_ < most_) {
      const double before = std::exchange(heat, hottest * Heat());
      if (neighbours_ && heat > before) {
        now = best_.draft;
        cost = cost_.Of(best_);
      }
      DraftPlan changed = now;
      for (int changes = 1 + dice_.Roll(2); changes > 0; --changes) dice_.Change(changed);
      if (changed == now) {
        // Dice that never find a change must end, too.
        if (++idle_ > kMostIdle) break;
        continue;
      }
      idle_ = 0;
      absl::StatusOr<SimulatedDraft> tried = simulator_.Run(std::move(changed));
      if (absl::IsResourceExhausted(tried.status())) continue;
      if (!tried.ok()) return tried.status();
      const double new_cost = cost_.Of(*tried);
      if (new_cost > cost && dice_.Uniform() >= std::exp((cost - new_cost) / heat)) continue;
      now = tried->draft;
      cost = new_cost;
      if (tried->score < best_.score) best_ = *std::move(tried);
    }
    return std::move(best_);
  }

 private:
  static constexpr int kMostIdle = 1'000;

  double Hottest() const {
    if (neighbours_) return kHotForNeighbours;
    return most_ < kManySimulations ? kHot : kHottest;
  }

  // From 1 down to 0, once or kRounds times.
  double Heat() const {
    const double rounds = (most_ < kManySimulations && !neighbours_ ? 1 : kRounds) *
                          static_cast<double>(simulator_.simulations() - first_) / most_;
    return 1 - (rounds - std::floor(rounds));
  }

  DraftSimulator& simulator_;
  const int first_;
  const int most_;
  const bool neighbours_;
  SimulatedDraft best_;
  const AnnealingCost cost_;
  RandomChanges dice_;
  int idle_ = 0;
};

}  // namespace

absl::StatusOr<SimulatedDraft> AnnealDraft(DraftSimulator& simulator, SimulatedDraft start,
                                           int simulations, WeightSearch weights,
                                           AnnealedStages stages) {
  return Annealer(simulator, std::move(start), simulations, weights, stages).Run();
}

}  // namespace siphon
