#include "planner/strategies/mpress/mpress_give.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "planner/lowering/program_slots.h"
#include "planner/placement_bytes.h"
#include "planner/strategies/mpress/mpress_rule.h"
#include "planner/strategies/mpress/mpress_times.h"

namespace siphon {
namespace {

struct Movable {
  Nanos overhead;
  int stage;
  int group;
};

// Whether activations of the stage are kept through other actions of the worker; else there is no
// time in which they could be away.
bool KeepsThroughOthers(const ProgramSlots& slots, const Schedule& schedule, StageId stage) {
  for (int microbatch = 0; microbatch < schedule.microbatches; ++microbatch) {
    const ProgramSlots::Life life =
        slots.LifeOf({.stage = stage, .microbatch = MicrobatchId(microbatch)});
    if (life.backward > life.forward + 1) return true;
  }
  return false;
}

std::vector<Movable> MovableOf(const MpressEmulator& emulator, const MemoryPlan& memory,
                               const std::vector<std::vector<Nanos>>& live_intervals, int worker) {
  std::vector<Movable> movable;
  const PlanningProblem& problem = emulator.problem();
  const std::optional<HostPaths> host =
      HostPathsOf(problem, emulator.mapping().device_of_worker[worker]);
  const ProgramSlots slots(problem.schedule, worker);
  for (const StageId stage : StagesOf(problem.schedule, WorkerId(worker))) {
    const bool are_kept = KeepsThroughOthers(slots, problem.schedule, stage);
    const std::vector<PlannedGroup>& groups = memory.stages[stage.value].groups;
    for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
      const TensorGroup& facts = groups[group].group;
      const Placement placement = groups[group].choice.placement;
      const bool moves = placement == Placement::kRecompute || placement == Placement::kHostSwap;
      if (!IsPassing(facts.kind) || !moves) continue;
      if (facts.kind == GroupKind::kActivations && !are_kept) continue;
      TensorTimes times{.live_interval = live_intervals[stage.value][group]};
      if (facts.kind == GroupKind::kActivations) times.recompute = facts.recompute;
      if (host) times.host_swap = RoundTrip(facts.bytes, host->out, host->in);
      movable.push_back({MpressOverhead(times, placement), stage.value, group});
    }
  }
  std::sort(movable.begin(), movable.end(), [](const Movable& a, const Movable& b) {
    return std::tie(a.overhead, a.stage, a.group) > std::tie(b.overhead, b.stage, b.group);
  });
  return movable;
}

// [stage]: how often tensors are there at once: activations as often as the worker's are.
std::vector<LiveCopies> CopiesAtOnce(const Schedule& schedule) {
  const std::vector<int> live = PeakLiveActivations(schedule);
  const std::vector<int> versions = PeakWeightVersions(schedule);
  std::vector<LiveCopies> copies;
  for (size_t stage = 0; stage < versions.size(); ++stage) {
    copies.push_back({.microbatches = live[schedule.worker_of_stage[stage].value],
                      .weight_versions = versions[stage] - 1});
  }
  return copies;
}

// What a device without a worker has left; `live` is [stage].
Bytes SpareOfIdleDevice(const PlanningProblem& problem, DeviceId device, const MemoryPlan& memory,
                        const std::vector<LiveCopies>& live) {
  const Bytes all = problem.topology.devices[device.value].memory;
  Bytes spare = all == Bytes(0) ? kPlenty : all;
  for (size_t stage = 0; stage < memory.stages.size(); ++stage) {
    for (const auto& [group, choice] : memory.stages[stage].groups) {
      for (const Stripe& stripe : choice.stripes) {
        if (stripe.lender == device) spare -= stripe.bytes * CopiesAway(group.kind, live[stage]);
      }
    }
  }
  return spare;
}

std::vector<Lender> LendersOf(const MpressEmulator& emulator, const MpressCandidate& current,
                              int worker, const std::vector<LiveCopies>& live) {
  std::vector<Lender> lenders;
  const std::vector<DeviceId>& devices = emulator.mapping().device_of_worker;
  for (const PeerPath& path : PeerPathsOf(emulator.problem(), devices[worker])) {
    const auto place = std::find(devices.begin(), devices.end(), path.lender);
    const Bytes spare =
        place == devices.end()
            ? SpareOfIdleDevice(emulator.problem(), path.lender, current.memory, live)
            : emulator.SpareOf(current, static_cast<int>(place - devices.begin()));
    if (spare > Bytes(0)) lenders.push_back({path.lender, path.out.rate, spare});
  }
  return lenders;
}

void TakeRoom(const std::vector<Stripe>& stripes, int copies, std::vector<Lender>& lenders) {
  for (Lender& lender : lenders) {
    for (const Stripe& stripe : stripes) {
      if (stripe.lender == lender.device) lender.spare -= stripe.bytes * copies;
    }
  }
}

}  // namespace

GivenToLenders GiveToLenders(const MpressEmulator& emulator, const MpressCandidate& current,
                             const std::vector<std::vector<Nanos>>& live_intervals, int worker,
                             int most, MpressStriping striping) {
  const PlanningProblem& problem = emulator.problem();
  const std::vector<LiveCopies> live = CopiesAtOnce(problem.schedule);
  std::vector<Lender> lenders = LendersOf(emulator, current, worker, live);
  GivenToLenders given{.memory = current.memory};
  for (const Movable& movable : MovableOf(emulator, current.memory, live_intervals, worker)) {
    if (given.groups == most) break;
    auto& [group, choice] = given.memory.stages[movable.stage].groups[movable.group];
    const int copies = CopiesAway(group.kind, live[movable.stage]);
    auto stripes = StripesWithin({group.bytes, copies}, lenders, problem.topology.copy_engines,
                                 striping, problem.granule);
    if (!stripes) continue;
    TakeRoom(*stripes, copies, lenders);
    choice = {.placement = Placement::kPeerSwap, .stripes = *std::move(stripes)};
    ++given.groups;
  }
  return given;
}

}  // namespace siphon
