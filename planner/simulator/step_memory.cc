#include "planner/simulator/step_memory.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/marked_grid.h"
#include "planner/simulator/step_accounts.h"
#include "planner/status.h"

namespace siphon {
namespace {

// The changes of each moment of each task, in one array, in the order in which they were added.
class ChangeIndex {
 public:
  ChangeIndex(const std::vector<MemoryChange>& changes, size_t tasks) : first_(2 * tasks + 2, 0) {
    for (const MemoryChange& change : changes) ++first_[Slot(change.task, change.moment) + 2];
    for (size_t slot = 2; slot < first_.size(); ++slot) first_[slot] += first_[slot - 1];
    order_.resize(changes.size());
    for (size_t index = 0; index < changes.size(); ++index) {
      order_[first_[Slot(changes[index].task, changes[index].moment) + 1]++] =
          static_cast<int>(index);
    }
  }

  std::pair<const int*, const int*> Of(const TaskEvent& event) const {
    const size_t slot = Slot(event.task.value, event.moment);
    return {order_.data() + first_[slot], order_.data() + first_[slot + 1]};
  }

 private:
  static size_t Slot(int task, TaskMoment moment) {
    return 2 * static_cast<size_t>(task) + (moment == TaskMoment::kEnd ? 1 : 0);
  }

  std::vector<int> first_;  // [slot], and one behind
  std::vector<int> order_;
};

struct Account {
  MemoryByKind held;
  Bytes total;
  Bytes peak_total;
  MemoryByKind peak;
  Bytes capacity;  // 0: no limit
};

class MemoryBooks {
 public:
  MemoryBooks(const SimulationInput& input, const StepGraph& step)
      : input_(input),
        step_(step),
        holders_(input),
        accounts_(static_cast<size_t>(step.workers) + holders_.others().size()) {
    memory_.curves.resize(step.workers);
    const std::vector<MemoryByKind> held = StaticMemory(input);
    for (int worker = 0; worker < step.workers; ++worker) {
      Account& account = accounts_[worker];
      const int place = worker % WorkerCount(input.schedule);
      account.held = account.peak = held[place];
      account.total = account.peak_total = Total(account.held);
      if (!input.capacity.empty()) account.capacity = input.capacity[place];
      memory_.curves[worker].push_back({Nanos(0), account.held});
    }
    for (size_t other = 0; other < holders_.others().size(); ++other) {
      accounts_[step.workers + other].capacity = holders_.others()[other].capacity;
    }
  }

  absl::Status CheckStatic() const {
    for (int worker = 0; worker < step_.workers; ++worker) {
      const Account& account = accounts_[worker];
      if (account.capacity == Bytes(0) || account.total <= account.capacity) continue;
      return absl::ResourceExhaustedError(absl::StrCat(
          "worker ", worker, " holds ", FormatBytes(account.total), " before its first action (",
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
    if (change.account >= step_.workers) return absl::OkStatus();
    MemoryCurve& curve = memory_.curves[change.account];
    if (curve.back().time != now) curve.push_back({now, {}});
    curve.back().bytes = account.held;
    return absl::OkStatus();
  }

  StepMemory Take() {
    for (int worker = 0; worker < step_.workers; ++worker) {
      memory_.peaks.push_back(accounts_[worker].peak);
    }
    memory_.host_peak = accounts_[holders_.host()].peak_total;
    for (size_t other = 1; other < holders_.others().size(); ++other) {
      const Bytes peak = accounts_[step_.workers + other].peak_total;
      if (peak > Bytes(0)) memory_.other_peaks.push_back({holders_.others()[other].name, peak});
    }
    return std::move(memory_);
  }

 private:
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
    const std::string holder = change.account >= step_.workers
                                   ? holders_.others()[change.account - step_.workers].name
                               : change.account == change.worker
                                   ? std::string("it")
                                   : absl::StrCat("worker ", change.account, ", its lender,");
    return absl::ResourceExhaustedError(absl::StrCat(
        "worker ", change.worker, " has ", ToString(action), ", which asks for ",
        FormatBytes(change.bytes), " of ", MemoryKindName(change.kind), ", but ", holder, " has ",
        FormatBytes(account.capacity - account.total), " free of ", FormatBytes(account.capacity),
        " (held: ", Breakdown(account.held), ")\n", MarkedGrid(input_.schedule, where)));
  }

  const SimulationInput& input_;
  const StepGraph& step_;
  const StepAccounts holders_;
  std::vector<Account> accounts_;
  StepMemory memory_;
};

}  // namespace

std::vector<MemoryByKind> StaticMemory(const SimulationInput& input) {
  std::vector<MemoryByKind> memory(input.schedule.programs.size());
  if (!input.held.empty()) memory = input.held;
  for (int stage = 0; stage < StageCount(input.schedule); ++stage) {
    const StageCost& cost = input.stages[stage];
    MemoryByKind& held = memory[input.schedule.worker_of_stage[stage].value];
    held[MemoryKind::kParameters] += cost.parameters;
    held[MemoryKind::kGradients] += cost.gradients;
    held[MemoryKind::kOptimizer] += cost.optimizer_state;
  }
  return memory;
}

absl::StatusOr<StepMemory> KeepMemoryBooks(const SimulationInput& input, const StepGraph& step,
                                           const TaskRun& run) {
  MemoryBooks books(input, step);
  SIPHON_RETURN_IF_ERROR(books.CheckStatic());
  const ChangeIndex index(step.changes, step.graph.tasks().size());
  for (const TaskEvent& event : run.events) {
    const Nanos now = (event.moment == TaskMoment::kBegin ? run.begin : run.end)[event.task.value];
    const auto [begin, end] = index.Of(event);
    for (const int* change = begin; change != end; ++change) {
      SIPHON_RETURN_IF_ERROR(books.Apply(step.changes[*change], now));
    }
  }
  return books.Take();
}

}  // namespace siphon
