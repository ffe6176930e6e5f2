#include "planner/search/stage_pattern.h"

#include <algorithm>
#include <cstddef>

#include "planner/cheapest_drops.h"
#include "planner/drafts/host_reach.h"
#include "planner/layer_cost.h"

namespace siphon {
namespace {

constexpr int kEighths = LowerMemoryOptions::kShares;

}  // namespace

std::vector<PatternNumber> PatternNumbers(const PlanningProblem& problem, int layers) {
  constexpr int kFew = 3;
  constexpr int kSome = 6;
  constexpr int kMany = 12;
  const DeviceMapping anyhow = IdentityMapping(static_cast<int>(problem.schedule.programs.size()));
  const bool host = ReachesHost(problem, anyhow);
  std::vector<PatternNumber> numbers = {{&StagePattern::again, layers * kEighths, true},
                                        {&StagePattern::drops_left_out, kFew},
                                        {&StagePattern::actions_made_early, kSome},
                                        {&StagePattern::forwards_to_leave, kFew},
                                        {&StagePattern::actions_to_come_back, kFew},
                                        {&StagePattern::first_stay, 1},
                                        {&StagePattern::drop_direct, 1}};
  if (!problem.topology.links.empty()) {
    numbers.push_back({&StagePattern::to_lenders, layers * kEighths, true});
  }
  if (!host) return numbers;
  numbers.push_back({&StagePattern::to_host, layers * kEighths, true});
  numbers.insert(numbers.end(), {{&StagePattern::state, kEighths},
                                 {&StagePattern::home, kEighths},
                                 {&StagePattern::actions_before_step, kSome},
                                 {&StagePattern::groups_ahead, kFew},
                                 {&StagePattern::forwards_to_leave_home, kMany},
                                 {&StagePattern::actions_to_come_home, kMany}});
  if (HostMayStep(problem, anyhow)) {
    numbers.push_back({&StagePattern::host_steps, 1});
    numbers.push_back({&StagePattern::streamed, kSome});
  }
  return numbers;
}

PatternWriter::PatternWriter(const PlanningProblem& problem) : problem_(problem) {
  const auto costs = LayerCosts(problem.profile, problem.partition);
  for (size_t stage = 0; stage < costs.size(); ++stage) {
    layers_ = std::max(layers_, static_cast<int>(costs[stage].size()));
    saving_.emplace_back();
    drops_.emplace_back();
    for (size_t layer = 0; layer < costs[stage].size(); ++layer) {
      const size_t index = static_cast<size_t>(problem.partition.stages[stage].begin) + layer;
      std::vector<int>& drops = drops_.back().emplace_back();
      for (const DropStep& drop :
           CheapestDrops(problem.profile.layers[index], costs[stage][layer].stash)) {
        drops.insert(drops.begin(), drop.first_tensors);
      }
      if (!drops.empty()) saving_.back().push_back(static_cast<int>(layer));
    }
    steps_.push_back(CanStream(problem, StageId(static_cast<int>(stage))));
  }
}

void PatternWriter::Write(const StagePattern& pattern, int index, StageDraft& stage) const {
  PlaceActivations(pattern, index, stage);
  if (steps_[static_cast<size_t>(index)]) PlaceState(pattern, stage);
}

void PatternWriter::PlaceActivations(const StagePattern& pattern, int index,
                                     StageDraft& stage) const {
  const std::vector<int>& saving = saving_[static_cast<size_t>(index)];
  const auto layers = static_cast<int>(stage.activations.size());
  int begin = 0;
  auto end = static_cast<int>(saving.size());
  const auto place = [&](int eighths, Placement to, bool last) {
    // Whole eighths of a layer, in proportion to the stage's size.
    for (int left = (eighths * layers + layers_ / 2) / layers_; left > 0 && begin < end;
         left -= kEighths) {
      const auto layer = static_cast<size_t>(saving[static_cast<size_t>(last ? --end : begin++)]);
      stage.activations[layer] = to;
      stage.shares[layer] = std::min(left, kEighths);
      if (to != Placement::kRecompute) continue;
      const std::vector<int>& drops = drops_[static_cast<size_t>(index)][layer];
      const size_t out = std::min(drops.size() - 1, static_cast<size_t>(pattern.drops_left_out));
      stage.first_tensors[layer] = drops[out];
    }
  };
  place(pattern.again, Placement::kRecompute, true);
  place(pattern.to_host, Placement::kHostSwap, false);
  place(pattern.to_lenders, Placement::kPeerSwap, false);
  stage.layers_made_early = pattern.actions_made_early > 0 ? layers : 0;
  stage.actions_made_early = std::max(0, pattern.actions_made_early - 1);
  stage.timing.forwards_to_leave = pattern.forwards_to_leave;
  stage.timing.actions_to_come_back = pattern.actions_to_come_back;
  stage.timing.turn =
      pattern.first_stay > 0 ? SwapTiming::Turn::kFirstStay : SwapTiming::Turn::kLastStay;
  stage.direct = pattern.drop_direct > 0 ? DirectBackward::kDrop : DirectBackward::kLeave;
}

void PatternWriter::PlaceState(const StagePattern& pattern, StageDraft& stage) const {
  const auto layers = static_cast<int>(stage.optimizer_state.size());
  const auto part = [&](int eighths) { return (eighths * layers + kEighths / 2) / kEighths; };
  const int away = part(pattern.state);
  if (away == 0) return;
  std::fill(stage.optimizer_state.end() - away, stage.optimizer_state.end(), Placement::kHostSwap);
  if (pattern.host_steps > 0 && problem_.host_step > Nanos(0)) stage.update = UpdatePlace::kHost;
  stage.groups_streamed = stage.update == UpdatePlace::kHost ? pattern.streamed : 0;
  stage.timing.actions_before_step = pattern.actions_before_step;
  stage.timing.groups_ahead = pattern.groups_ahead;
  const int home = std::min(away, part(pattern.home));
  if (home == 0) return;
  stage.timing.groups_away_between_steps = away - home;
  stage.timing.home_beside_host = true;
  stage.timing.forwards_to_leave_home = std::max(1, pattern.forwards_to_leave_home);
  stage.timing.actions_to_come_home = pattern.actions_to_come_home;
}

}  // namespace siphon
