#include "planner/strategies/mpress/mpress_emulator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "planner/drafts/promised_peaks.h"
#include "planner/memory/memory_kind.h"
#include "planner/status.h"

namespace siphon {

bool IsBetter(const MpressCandidate& a, const MpressCandidate& b) {
  constexpr int64_t kVisibleShare = 1'000;
  if (a.excess != b.excess) return a.excess < b.excess;
  const Nanos visible(b.simulated.step_time.value / kVisibleShare);
  return a.simulated.step_time + visible < b.simulated.step_time;
}

MpressEmulator::MpressEmulator(const PlanningProblem& problem)
    : problem_(problem),
      mapping_(problem.mapping.value_or(
          IdentityMapping(WorkerCount(problem.schedule) * problem.schedule.replicas))),
      programs_(problem.schedule),
      known_(problem) {
  const auto stages = static_cast<size_t>(StageCount(problem.schedule));
  const size_t layers = problem.profile.layers.size();
  lowering_ = {.timing = std::vector<SwapTiming>(stages),
               .direct = std::vector<DirectBackward>(stages),
               .weights = std::vector<WeightResidence>(stages),
               .state_times = std::vector<StateTimes>(stages),
               .made_ahead = std::vector<int>(layers, LowerMemoryOptions::kInBackward),
               .shares = std::vector<int>(layers, LowerMemoryOptions::kShares)};
}

absl::StatusOr<MpressCandidate> MpressEmulator::Run(MemoryPlan memory) {
  ++simulations_;
  MpressCandidate candidate{.memory = std::move(memory)};
  SIPHON_ASSIGN_OR_RETURN(LoweredPlan lowered, programs_.Lower(candidate.memory, lowering_));
  const bool promises = problem_.lending == LendingRule::kPeaks;
  SIPHON_ASSIGN_OR_RETURN(StepTimes times,
                          known_.Run(mapping_, candidate.memory, lowered,
                                     promises ? LendingDetail::kLent : LendingDetail::kNone));
  candidate.schedule = std::move(lowered.schedule);
  if (promises) {
    SIPHON_ASSIGN_OR_RETURN(candidate.peaks, PromisedPeaks(problem_, mapping_, candidate.memory,
                                                           candidate.schedule, times));
  } else {
    candidate.peaks = TotalPeaks(times.step);
  }
  candidate.simulated = std::move(times.step);
  for (int worker = 0; worker < WorkerCount(problem_.schedule); ++worker) {
    candidate.excess += std::max(Bytes(0), Bytes(0) - SpareOf(candidate, worker));
  }
  return candidate;
}

Bytes MpressEmulator::SpareOf(const MpressCandidate& candidate, int worker) const {
  const Bytes capacity = problem_.capacity.empty() ? Bytes(0) : problem_.capacity[worker];
  return capacity == Bytes(0) ? kPlenty : capacity - candidate.peaks[worker];
}

std::vector<bool> MpressEmulator::FullWorkers(const MpressCandidate& candidate) const {
  std::vector<bool> full;
  for (int worker = 0; worker < WorkerCount(problem_.schedule); ++worker) {
    full.push_back(SpareOf(candidate, worker) < Bytes(0));
  }
  return full;
}

bool MpressEmulator::DropDirectly(WorkerId worker) {
  bool changes = false;
  for (const StageId stage : StagesOf(problem_.schedule, worker)) {
    changes = changes || lowering_.direct[stage.value] == DirectBackward::kLeave;
    lowering_.direct[stage.value] = DirectBackward::kDrop;
  }
  return changes;
}

void MpressEmulator::ForgetDirectDrops() {
  std::fill(lowering_.direct.begin(), lowering_.direct.end(), DirectBackward::kLeave);
}

}  // namespace siphon
