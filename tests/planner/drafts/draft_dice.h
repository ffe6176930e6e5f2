#ifndef SIPHON_TESTS_PLANNER_DRAFTS_DRAFT_DICE_H_
#define SIPHON_TESTS_PLANNER_DRAFTS_DRAFT_DICE_H_

#include <cstdint>
#include <utility>

#include "planner/drafts/draft_plan.h"
#include "planner/keyed_hash.h"

namespace siphon {

// Changes drafts as a search does.
class DraftDice {
 public:
  explicit DraftDice(uint64_t seed) : dice_(seed) {}
  int Roll(int sides) { return static_cast<int>(dice_.Below(static_cast<uint64_t>(sides))); }

  // One decision of one stage; some of them change nothing.
  void Change(DraftPlan& draft) {
    constexpr Placement kPlaces[] = {Placement::kKeep, Placement::kRecompute, Placement::kPeerSwap,
                                     Placement::kHostSwap};
    StageDraft& stage = draft.stages[Roll(static_cast<int>(draft.stages.size()))];
    const auto layers = static_cast<int>(stage.activations.size());
    switch (Roll(12)) {
      case 0:
        stage.timing.forwards_to_leave = Roll(3);
        break;
      case 1:
        stage.timing.actions_to_come_back = Roll(3);
        break;
      case 2:
        stage.recompute_run = Roll(3);
        break;
      case 3:
        stage.optimizer_state[Roll(layers)] =
            Roll(2) == 0 ? Placement::kKeep : Placement::kHostSwap;
        break;
      case 4:
        std::swap(draft.mapping.device_of_worker.front(), draft.mapping.device_of_worker.back());
        break;
      case 5:
        stage.shares[Roll(layers)] = 1 + Roll(LowerMemoryOptions::kShares);
        break;
      case 6:
        stage.layers_made_early = Roll(layers + 1);
        stage.actions_made_early = Roll(3);
        break;
      case 7:
        stage.direct = Roll(2) == 0 ? DirectBackward::kDrop : DirectBackward::kLeave;
        break;
      case 8:
        stage.parameters[Roll(layers)] = Roll(2) == 0 ? Placement::kKeep : Placement::kHostSwap;
        break;
      case 9:
        stage.timing.turn =
            Roll(2) == 0 ? SwapTiming::Turn::kLastStay : SwapTiming::Turn::kFirstStay;
        break;
      default:
        stage.activations[Roll(layers)] = kPlaces[Roll(4)];
    }
  }

 private:
  KeyedGenerator dice_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_DRAFTS_DRAFT_DICE_H_
