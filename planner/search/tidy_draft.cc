#include "planner/search/tidy_draft.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/status.h"

namespace siphon {
namespace {

// As many of the layers that are at `from` stay, later ones first.
void Keep(std::vector<Placement>& layers, Placement from, std::ptrdiff_t count) {
  for (auto layer = layers.rbegin(); layer != layers.rend() && count > 0; ++layer) {
    if (*layer != from) continue;
    *layer = Placement::kKeep;
    --count;
  }
}

// Replaces `best` where the change is no worse.
absl::StatusOr<bool> Take(DraftSimulator& simulator, DraftPlan change, SimulatedDraft& best) {
  absl::StatusOr<SimulatedDraft> tried = simulator.Run(std::move(change));
  if (absl::IsResourceExhausted(tried.status())) return false;
  if (!tried.ok()) return tried.status();
  if (tried->score > best.score) return false;
  best = *std::move(tried);
  return true;
}

absl::Status TidyLayers(DraftSimulator& simulator, size_t stage, GroupKind kind, Placement from,
                        SimulatedDraft& best) {
  const std::vector<Placement>& layers = PlacementsOf(best.draft.stages[stage], kind);
  const std::ptrdiff_t all = std::count(layers.begin(), layers.end(), from);
  for (const std::ptrdiff_t count : {all, all / 2}) {
    if (count == 0) break;
    DraftPlan change = best.draft;
    Keep(PlacementsOf(change.stages[stage], kind), from, count);
    SIPHON_ASSIGN_OR_RETURN(const bool taken, Take(simulator, std::move(change), best));
    if (taken) break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SimulatedDraft> TidyDraft(DraftSimulator& simulator, SimulatedDraft start) {
  if (!Fits(start)) return start;
  SimulatedDraft best = std::move(start);
  for (size_t stage = 0; stage < best.draft.stages.size(); ++stage) {
    for (const Placement from : {Placement::kPeerSwap, Placement::kNvmeSwap, Placement::kHostSwap,
                                 Placement::kRecompute}) {
      for (int kind = 0; kind < kGroupKinds; ++kind) {
        SIPHON_RETURN_IF_ERROR(
            TidyLayers(simulator, stage, static_cast<GroupKind>(kind), from, best));
      }
    }
  }
  return best;
}

}  // namespace siphon
