#include "planner/search/give_slack.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kMostActions = 8;
// What the search may take: changes tried, times the forwards of single layers in a step.
constexpr int64_t kMostForwards = 60'000;
constexpr int64_t kFewestChanges = 12;
constexpr int64_t kMostChanges = 72;

int ChangesOf(const PlanningProblem& problem) {
  const int64_t forwards =
      std::max<int64_t>(1, static_cast<int64_t>(problem.profile.layers.size()) *
                               problem.schedule.microbatches * problem.schedule.replicas);
  return static_cast<int>(std::clamp(kMostForwards / forwards, kFewestChanges, kMostChanges));
}

// How a stage's copies get other time.
struct TimingChange {
  int SwapTiming::*field;
  int by;
};
constexpr TimingChange kChanges[] = {
    {&SwapTiming::actions_to_come_back, 2},  {&SwapTiming::actions_to_come_back, 1},
    {&SwapTiming::actions_to_come_back, -1}, {&SwapTiming::forwards_to_leave, 1},
    {&SwapTiming::forwards_to_leave, -1},    {&SwapTiming::actions_before_step, 1}};

bool Moves(const StageDraft& stage) {
  const auto moves = [](const std::vector<Placement>& layers) {
    return std::any_of(layers.begin(), layers.end(), IsSwap);
  };
  return moves(stage.activations) || moves(stage.parameters) || moves(stage.gradients) ||
         moves(stage.optimizer_state) || moves(stage.weight_versions);
}

class SlackSearch {
 public:
  SlackSearch(DraftSimulator& simulator, DraftSimulator& slower, SimulatedDraft start,
              Nanos longest)
      : simulator_(simulator),
        slower_(slower),
        best_(std::move(start)),
        longest_(longest),
        left_(ChangesOf(simulator.problem())) {}

  absl::StatusOr<SimulatedDraft> Run() {
    SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft slowed, slower_.Run(best_.draft));
    slowed_ = slowed.score;
    for (bool better = true; better;) {
      better = false;
      for (size_t stage = 0; stage < best_.draft.stages.size(); ++stage) {
        if (!Moves(best_.draft.stages[stage])) continue;
        for (const TimingChange& change : kChanges) {
          SIPHON_ASSIGN_OR_RETURN(const bool taken, Take(stage, change));
          better |= taken;
        }
      }
    }
    return std::move(best_);
  }

 private:
  absl::StatusOr<bool> Take(size_t stage, const TimingChange& change) {
    DraftPlan draft = best_.draft;
    int& value = draft.stages[stage].timing.*change.field;
    const int before = std::exchange(value, std::clamp(value + change.by, 0, kMostActions));
    if (value == before || left_-- <= 0) return false;
    absl::StatusOr<SimulatedDraft> tried = simulator_.Run(draft);
    if (absl::IsResourceExhausted(tried.status())) return false;
    SIPHON_RETURN_IF_ERROR(tried.status());
    if (!Fits(*tried) || tried->score.step > longest_) return false;
    const absl::StatusOr<SimulatedDraft> slowed = slower_.Run(std::move(draft));
    if (absl::IsResourceExhausted(slowed.status())) return false;
    SIPHON_RETURN_IF_ERROR(slowed.status());
    if (slowed->score >= slowed_) return false;
    slowed_ = slowed->score;
    best_ = *std::move(tried);
    return true;
  }

  DraftSimulator& simulator_;
  DraftSimulator& slower_;
  SimulatedDraft best_;
  DraftScore slowed_;  // of `best_`, where copies are slower
  const Nanos longest_;
  int left_;  // changes that may be tried
};

}  // namespace

Topology WithSlowerCopies(Topology topology) {
  const auto slow = [](BytesPerSecond& rate) {
    if (rate.value > 0) rate = BytesPerSecond(std::max<int64_t>(1, rate.value / 3 * 2));
  };
  for (TopologyDevice& device : topology.devices) {
    slow(device.egress);
    slow(device.ingress);
  }
  for (TopologyLink& link : topology.links) slow(link.rate);
  for (PcieSwitch& uplink : topology.switches) {
    slow(uplink.to_host);
    slow(uplink.from_host);
    slow(uplink.to_host_both);
    slow(uplink.from_host_both);
  }
  for (NvmeDrive& drive : topology.drives) {
    slow(drive.read);
    slow(drive.write);
  }
  return topology;
}

absl::StatusOr<SimulatedDraft> GiveSlack(DraftSimulator& simulator, SimulatedDraft start,
                                         Nanos longest) {
  if (!Fits(start)) return start;
  PlanningProblem problem = simulator.problem();
  problem.topology = WithSlowerCopies(std::move(problem.topology));
  DraftSimulator slower(problem);
  slower.LendBy(simulator.lending());
  return SlackSearch(simulator, slower, std::move(start), longest).Run();
}

}  // namespace siphon
