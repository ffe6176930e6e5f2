#include "planner/strategies/mpress_emulator.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "planner/memory/memory_kind.h"
#include "planner/status.h"
#include "planner/strategies/promised_peaks.h"

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
      known_(problem),
      direct_(StageCount(problem.schedule), DirectBackward::kLeave) {}

absl::StatusOr<MpressCandidate> MpressEmulator::Run(MemoryPlan memory) {
  ++simulations_;
  MpressCandidate candidate{.memory = std::move(memory)};
  SIPHON_ASSIGN_OR_RETURN(candidate.schedule, LowerMemoryPlan(problem_.schedule, candidate.memory,
                                                              {.direct = direct_}));
  const bool promises = problem_.lending == LendingRule::kPeaks;
  SIPHON_ASSIGN_OR_RETURN(StepTimes times,
                          known_.Run(mapping_, candidate.memory, candidate.schedule,
                                     promises ? LendingDetail::kLent : LendingDetail::kNone));
  if (promises) {
    SIPHON_ASSIGN_OR_RETURN(candidate.peaks, PromisedPeaks(problem_, mapping_, candidate.memory,
                                                           candidate.schedule, times));
  } else {
    for (const MemoryByKind& peak : times.step.peak) candidate.peaks.push_back(Total(peak));
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
    changes = changes || direct_[stage.value] == DirectBackward::kLeave;
    direct_[stage.value] = DirectBackward::kDrop;
  }
  return changes;
}

void MpressEmulator::ForgetDirectDrops() {
  std::fill(direct_.begin(), direct_.end(), DirectBackward::kLeave);
}

}  // namespace siphon
