#include "planner/simulator/step_memory.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/home_groups.h"
#include "planner/marked_grid.h"
#include "planner/memory/group_memory.h"
#include "planner/simulator/graph/stage_groups.h"
#include "planner/simulator/step_accounts.h"
#include "planner/status.h"
#include "planner/steps_on_host.h"

namespace siphon {
namespace {

// The changes of each moment of each task, in the order in which they were added.
class ChangeIndex {
 public:
  static constexpr int kNone = -1;

  ChangeIndex(const std::vector<MemoryChange>& changes, size_t tasks)
      : first_(2 * tasks, kNone), next_(changes.size()) {
    for (int index = static_cast<int>(changes.size()) - 1; index >= 0; --index) {
      int& first = first_[Slot(changes[index].task, changes[index].moment)];
      next_[index] = std::exchange(first, index);
    }
  }

  // Places of changes; kNone: there is none (more).
  int FirstOf(const TaskEvent& event) const { return first_[Slot(event.task.value, event.moment)]; }
  int Behind(int change) const { return next_[change]; }

 private:
  static size_t Slot(int task, TaskMoment moment) {
    return 2 * static_cast<size_t>(task) + (moment == TaskMoment::kEnd ? 1 : 0);
  }

  std::vector<int> first_;  // [slot]
  std::vector<int> next_;   // [change]: the next one of its slot
};

struct Account {
  MemoryByKind held;
  Bytes total;
  Bytes peak_total;
  MemoryByKind peak;
  Bytes capacity;  // 0: no limit
};

// Groups that are with lenders for the whole step. Requires: one replica.
struct StaticLoans {
  std::vector<Bytes> lent;    // [account]
  std::vector<Bytes> parked;  // [worker]
};

StaticLoans LoansOf(const SimulationInput& input, const StepAccounts& accounts) {
  const auto workers = static_cast<size_t>(accounts.workers());
  StaticLoans loans{std::vector<Bytes>(workers + accounts.others().size()),
                    std::vector<Bytes>(workers)};
  for (size_t stage = 0; stage < input.memory.stages.size(); ++stage) {
    for (const auto& [group, choice] : input.memory.stages[stage].groups) {
      if (group.kind == GroupKind::kActivations) continue;
      for (const Stripe& stripe : choice.stripes) {
        loans.lent[accounts.OfDevice(stripe.lender)] += stripe.bytes;
        loans.parked[input.schedule.worker_of_stage[stage].value] += stripe.bytes;
      }
    }
  }
  return loans;
}

class MemoryBooks {
 public:
  MemoryBooks(const SimulationInput& input, const StepGraph& step, Nanos step_time,
              BooksDetail detail)
      : input_(input), step_(step), detail_(detail), holders_(input) {
    for (const MemoryByKind& held : StaticMemory(input, holders_)) {
      const auto account = static_cast<int>(accounts_.size());
      const Bytes total = Total(held);
      accounts_.push_back({.held = held,
                           .total = total,
                           .peak_total = total,
                           .peak = held,
                           .capacity = CapacityOf(account)});
      if (detail == BooksDetail::kCurves) curves_.push_back({{Nanos(0), held}});
    }
    if (detail != BooksDetail::kLent) return;
    const StaticLoans loans = LoansOf(input, holders_);
    for (int worker = 0; worker < step.workers; ++worker) {
      own_.emplace_back(accounts_[worker].total - loans.lent[worker], step_time);
      parked_.emplace_back(loans.parked[worker], step_time);
    }
  }

  absl::Status CheckStatic() const {
    for (size_t index = 0; index < accounts_.size(); ++index) {
      const Account& account = accounts_[index];
      if (account.capacity == Bytes(0) || account.total <= account.capacity) continue;
      const bool is_worker = index < static_cast<size_t>(step_.workers);
      return absl::ResourceExhaustedError(absl::StrCat(
          NameOf(static_cast<int>(index)), " holds ", FormatBytes(account.total),
          is_worker ? " before its first action (" : " before the first action (",
          Breakdown(account.held), "); its capacity is ", FormatBytes(account.capacity), ", ",
          FormatBytes(account.total - account.capacity), " less"));
    }
    return absl::OkStatus();
  }

  absl::Status Apply(const MemoryChange& change, Nanos now) {
    Account& account = accounts_[change.account];
    if (account.capacity > Bytes(0) && change.bytes > account.capacity - account.total) {
      return Exhausted(change, account);
    }
    account.held[change.kind] += change.bytes;
    account.total += change.bytes;
    if (account.total > account.peak_total) {
      account.peak_total = account.total;
      account.peak = account.held;
    }
    if (detail_ == BooksDetail::kLent) Lend(change, now);
    if (detail_ != BooksDetail::kCurves) return absl::OkStatus();
    MemoryCurve& curve = curves_[change.account];
    if (curve.back().time != now) curve.push_back({now, {}});
    curve.back().bytes = account.held;
    return absl::OkStatus();
  }

  StepMemory Take() {
    for (int worker = 0; worker < step_.workers; ++worker) {
      memory_.peaks.push_back(accounts_[worker].peak);
    }
    for (MomentCurve& curve : own_) memory_.lent.own.push_back(curve.Take());
    for (MomentCurve& curve : parked_) memory_.lent.parked.push_back(curve.Take());
    for (size_t other = 0; other < holders_.others().size(); ++other) {
      const auto& [name, capacity] = holders_.others()[other];
      const size_t account = step_.workers + other;
      const Bytes peak = accounts_[account].peak_total;
      if (peak == Bytes(0)) continue;
      if (holders_.IsHost(static_cast<int>(account))) {
        memory_.host_peak = std::max(memory_.host_peak, peak);
      } else {
        memory_.other_peaks.push_back({name, peak});
      }
      if (curves_.empty()) continue;
      memory_.other_curves.push_back({name, std::move(curves_[account]), capacity});
    }
    if (!curves_.empty()) curves_.resize(step_.workers);
    memory_.curves = std::move(curves_);
    return std::move(memory_);
  }

 private:
  void Lend(const MemoryChange& change, Nanos now) {
    // A message takes its receiver's memory for the receiver.
    const bool is_loan = change.account != change.worker && change.kind != MemoryKind::kBoundary;
    if (is_loan && holders_.IsDevice(change.account)) {
      parked_[change.worker].Change(change.bytes, now);
    } else if (!is_loan) {
      own_[change.account].Change(change.bytes, now);
    }
  }

  Bytes CapacityOf(int account) const {
    if (account >= step_.workers) return holders_.others()[account - step_.workers].capacity;
    return input_.capacity.empty() ? Bytes(0)
                                   : input_.capacity[account % WorkerCount(input_.schedule)];
  }

  std::string NameOf(int account) const {
    return account < step_.workers ? absl::StrCat("worker ", account)
                                   : holders_.others()[account - step_.workers].name;
  }

  static std::string Breakdown(const MemoryByKind& memory) {
    std::string text;
    for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
      if (memory.bytes[kind] == Bytes(0)) continue;
      absl::StrAppend(&text, text.empty() ? "" : ", ",
                      MemoryKindName(static_cast<MemoryKind>(kind)), " ",
                      FormatBytes(memory.bytes[kind]));
    }
    return text.empty() ? "nothing" : text;
  }

  absl::Status Exhausted(const MemoryChange& change, const Account& account) const {
    const ActionPosition where{change.worker % WorkerCount(input_.schedule), change.place};
    const Action& action = input_.schedule.programs[where.worker][where.index];
    const std::string holder = change.account == change.worker ? std::string("it")
                               : change.account < step_.workers
                                   ? absl::StrCat(NameOf(change.account), ", its lender,")
                                   : NameOf(change.account);
    return absl::ResourceExhaustedError(absl::StrCat(
        "worker ", change.worker, " has ", ToString(action), ", which asks for ",
        FormatBytes(change.bytes), " of ", MemoryKindName(change.kind),
        change.kind == MemoryKind::kLent ? " memory" : "", ", but ", holder, " has ",
        FormatBytes(account.capacity - account.total), " free of ", FormatBytes(account.capacity),
        " (held: ", Breakdown(account.held), ")\n", MarkedGrid(input_.schedule, where)));
  }

  const SimulationInput& input_;
  const StepGraph& step_;
  const BooksDetail detail_;
  const StepAccounts holders_;
  std::vector<Account> accounts_;
  std::vector<MemoryCurve> curves_;  // [account]; kCurves
  std::vector<MomentCurve> own_;     // [worker]; kLent
  std::vector<MomentCurve> parked_;  // [worker]; kLent
  StepMemory memory_;
};

// What is kept for a group where it goes, for the whole step.
void HoldPlace(const PlannedGroup& planned, const StepAccounts& accounts, int worker,
               std::vector<MemoryByKind>& memory) {
  const auto& [group, choice] = planned;
  const MemoryKind kind = MemoryKindOf(group.kind);
  if (choice.placement == Placement::kHostSwap)
    memory[accounts.OfHostOf(worker)][kind] += group.bytes;
  if (choice.placement == Placement::kNvmeSwap) {
    memory[accounts.OfDriveOf(worker)][kind] += group.bytes;
  }
  for (const Stripe& stripe : choice.stripes) {
    memory[accounts.OfDevice(stripe.lender)][MemoryKind::kLent] += stripe.bytes;
  }
}

void HoldStage(const SimulationInput& input, const StepAccounts& accounts, const HomeGroups& home,
               int stage, int worker, std::vector<MemoryByKind>& memory) {
  const StageCost& cost = input.stages[stage];
  memory[worker][MemoryKind::kParameters] += cost.parameters;
  memory[worker][MemoryKind::kGradients] += cost.gradients;
  if (input.memory.stages.empty()) {
    memory[worker][MemoryKind::kOptimizer] += cost.optimizer_state;
    return;
  }
  const StagePlan& plan = input.memory.stages[stage];
  const int state = plan.update == UpdatePlace::kHost ? accounts.OfHostOf(worker) : worker;
  memory[state][MemoryKind::kOptimizer] += cost.optimizer_state;
  for (size_t id = 0; id < plan.groups.size(); ++id) {
    const PlannedGroup& planned = plan.groups[id];
    const GroupKind kind = planned.group.kind;
    if (kind == GroupKind::kOptimizerState) {
      if (StepsOnHost(plan, planned)) continue;
      memory[state][MemoryKind::kOptimizer] -= planned.group.bytes;
      memory[worker][MemoryKind::kOptimizer] += planned.group.bytes;
    }
    if (IsPassing(kind) || !IsSwap(planned.choice.placement)) continue;
    HoldPlace(planned, accounts, worker, memory);
    if (home.contains({StageId(stage), GroupId(static_cast<int>(id))})) continue;
    memory[worker][MemoryKindOf(kind)] -= planned.group.bytes;
  }
}

}  // namespace

std::vector<MemoryByKind> StaticMemory(const SimulationInput& input, const StepAccounts& accounts) {
  std::vector<MemoryByKind> memory(static_cast<size_t>(accounts.workers()) +
                                   accounts.others().size());
  const int workers = WorkerCount(input.schedule);
  const HomeGroups home = HomeGroupsOf(input.schedule, input.memory);
  for (int account = 0; account < accounts.workers(); ++account) {
    if (!input.held.empty()) memory[account] = input.held[account % workers];
  }
  for (int replica = 0; replica < input.schedule.replicas; ++replica) {
    for (int stage = 0; stage < StageCount(input.schedule); ++stage) {
      const int worker = replica * workers + input.schedule.worker_of_stage[stage].value;
      HoldStage(input, accounts, home, stage, worker, memory);
    }
  }
  return memory;
}

absl::StatusOr<StepMemory> KeepMemoryBooks(const SimulationInput& input, const StepGraph& step,
                                           const TaskRun& run, BooksDetail detail) {
  MemoryBooks books(input, step, run.end_time, detail);
  SIPHON_RETURN_IF_ERROR(books.CheckStatic());
  const ChangeIndex index(step.changes, step.graph.tasks().size());
  for (const TaskEvent& event : run.events) {
    int change = index.FirstOf(event);
    if (change == ChangeIndex::kNone) continue;
    const Nanos now = (event.moment == TaskMoment::kBegin ? run.begin : run.end)[event.task.value];
    for (; change != ChangeIndex::kNone; change = index.Behind(change)) {
      SIPHON_RETURN_IF_ERROR(books.Apply(step.changes[change], now));
    }
  }
  return books.Take();
}

}  // namespace siphon
