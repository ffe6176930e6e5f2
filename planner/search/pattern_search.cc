#include "planner/search/pattern_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/keyed_hash.h"
#include "planner/search/annealing_cost.h"
#include "planner/search/stage_pattern.h"
#include "planner/status.h"

namespace siphon {
namespace {

// So many times from the start, each with a part of the simulations; with two more parts from the
// best of all.
constexpr int kStarts = 4;
constexpr int kParts = kStarts + 2;
// Of the step time, at the begin, as in anneal_draft.cc; so little that most of what is slower is
// not taken.
constexpr double kHeat = 0.005;
constexpr int kMostIdle = 1'000;

// Which worker's stages a pattern is of.
enum Role { kFirst, kMiddle, kLast, kRoles };
using Patterns = std::array<StagePattern, kRoles>;

class PatternSearch {
 public:
  PatternSearch(DraftSimulator& simulator, const DraftPlan& kept, uint64_t seed)
      : simulator_(simulator),
        kept_(kept),
        writer_(simulator.problem()),
        numbers_(PatternNumbers(simulator.problem(), writer_.layers())),
        roles_(kept.stages.size(), kMiddle),
        cost_(simulator.problem()),
        dice_(seed) {
    const Schedule& schedule = simulator.problem().schedule;
    for (size_t stage = 0; stage < roles_.size(); ++stage) {
      const int worker = schedule.worker_of_stage[stage].value;
      if (worker == WorkerCount(schedule) - 1) roles_[stage] = kLast;
      if (worker == 0) roles_[stage] = kFirst;
    }
    for (const PatternNumber& of : numbers_) {
      if (of.is_activations) activations_.push_back(of);
    }
  }

  absl::StatusOr<SimulatedDraft> Run(int simulations) {
    std::optional<Found> best;
    for (int start = 0; start < kStarts; ++start) {
      SIPHON_RETURN_IF_ERROR(Anneal(Patterns(), simulations / kParts, best));
    }
    if (!best) return absl::ResourceExhaustedError("none of the patterns can be simulated");
    const Patterns again = best->patterns;
    SIPHON_RETURN_IF_ERROR(Anneal(again, simulations * (kParts - kStarts) / kParts, best));
    return std::move(best->draft);
  }

 private:
  struct Found {
    Patterns patterns;
    SimulatedDraft draft;
  };

  // Puts what is better into `best`.
  absl::Status Anneal(Patterns now, int simulations, std::optional<Found>& best) {
    const int first = simulator_.simulations();
    std::optional<double> cost;  // of `now`
    for (int idle = 0; idle < kMostIdle; ++idle) {
      const int used = simulator_.simulations() - first;
      if (used >= simulations) break;
      Patterns changed = now;
      if (cost) Change(changed);
      if (cost && changed == now) continue;
      absl::StatusOr<SimulatedDraft> tried = simulator_.Run(Write(changed));
      if (simulator_.simulations() > first + used) idle = 0;
      if (absl::IsResourceExhausted(tried.status())) {
        if (!cost) now = changed;
        continue;
      }
      if (!tried.ok()) return tried.status();
      const double new_cost = cost_.Of(*tried);
      const double heat = kHeat * (1 - static_cast<double>(used) / simulations);
      if (cost && !Takes(*cost, new_cost, heat)) continue;
      now = changed;
      cost = new_cost;
      if (!best || tried->score < best->draft.score) best = Found{now, *std::move(tried)};
    }
    return absl::OkStatus();
  }

  bool Takes(double cost, double new_cost, double heat) {
    return new_cost <= cost || dice_.Uniform() < std::exp((cost - new_cost) / (heat * cost));
  }

  int Roll(int sides) { return static_cast<int>(dice_.Below(static_cast<uint64_t>(sides))); }
  const PatternNumber& Draw(const std::vector<PatternNumber>& numbers) {
    return numbers[static_cast<size_t>(Roll(static_cast<int>(numbers.size())))];
  }

  // One or two decisions, each of one pattern or, as often, of all in the same way.
  void Change(Patterns& patterns) {
    for (int changes = 1 + Roll(2); changes > 0; --changes) {
      const int role = Roll(2 * kRoles);
      const auto begin = patterns.begin() + (role < kRoles ? role : 0);
      const auto end = role < kRoles ? begin + 1 : patterns.end();
      if (Roll(4) == 0) {
        Exchange(begin, end);
      } else {
        ChangeNumber(begin, end);
      }
    }
  }

  // Activations that go elsewhere from now on.
  void Exchange(Patterns::iterator begin, Patterns::iterator end) {
    const PatternNumber& from = Draw(activations_);
    const PatternNumber& to = Draw(activations_);
    const int most = 1 + Roll(Roll(2) == 0 ? 2 : kFar);
    for (auto pattern = begin; pattern != end; ++pattern) {
      const int moved = std::min((*pattern).*from.number, most);
      (*pattern).*from.number -= moved;
      (*pattern).*to.number = std::min(to.most, (*pattern).*to.number + moved);
    }
  }

  void ChangeNumber(Patterns::iterator begin, Patterns::iterator end) {
    const PatternNumber& of = Draw(numbers_);
    const bool anywhere = Roll(3) == 0;
    const int most = Roll(3) == 0 ? kFar : 2;
    const int by = Roll(2 * most + 1) - most;
    const int to = Roll(of.most + 1);
    for (auto pattern = begin; pattern != end; ++pattern) {
      int& number = (*pattern).*of.number;
      number = anywhere ? to : std::clamp(number + by, 0, of.most);
    }
  }

  DraftPlan Write(const Patterns& patterns) const {
    DraftPlan draft = kept_;
    for (size_t stage = 0; stage < draft.stages.size(); ++stage) {
      writer_.Write(patterns[roles_[stage]], static_cast<int>(stage), draft.stages[stage]);
    }
    return draft;
  }

  static constexpr int kFar = 8;

  DraftSimulator& simulator_;
  const DraftPlan kept_;
  const PatternWriter writer_;
  const std::vector<PatternNumber> numbers_;
  std::vector<PatternNumber> activations_;
  std::vector<Role> roles_;  // [stage]
  const AnnealingCost cost_;
  KeyedGenerator dice_;
};

}  // namespace

absl::StatusOr<SimulatedDraft> BestPatterns(DraftSimulator& simulator, const DraftPlan& kept,
                                            int simulations, uint64_t seed) {
  return PatternSearch(simulator, kept, seed).Run(simulations);
}

}  // namespace siphon
