#ifndef SIPHON_PLANNER_SIMULATOR_STEP_MEMORY_H_
#define SIPHON_PLANNER_SIMULATOR_STEP_MEMORY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/memory/memory_kind.h"
#include "planner/simulator/engine/run_task_graph.h"
#include "planner/simulator/graph/step_graph.h"
#include "planner/simulator/lent_memory.h"
#include "planner/simulator/simulate.h"
#include "planner/simulator/step_accounts.h"

namespace siphon {

// What is written down of memory beside peaks.
enum class BooksDetail {
  kPeaks,   // nothing
  kCurves,  // all that each holder holds over time
  kLent,    // who holds what of whose; takes one replica
};

// What was held over time.
struct StepMemory {
  std::vector<MemoryCurve> curves;        // [worker]; kCurves
  std::vector<HolderCurve> other_curves;  // kCurves; of others that held anything
  LentMemory lent;                        // kLent
  std::vector<MemoryByKind> peaks;        // [worker]
  Bytes host_peak;
  std::vector<HolderPeak> other_peaks;
};

// [account]: what it holds before the first action. Swapped groups of training state count where
// they go, for the whole step; and with their worker, where they are home then.
std::vector<MemoryByKind> StaticMemory(const SimulationInput& input, const StepAccounts& accounts);

// Keeps the books of all accounts along the events of a run. At one moment, what ends gives back
// before what begins takes.
//
// Errors: ResourceExhausted, with the grid, for the first action that asks for more than is free.
absl::StatusOr<StepMemory> KeepMemoryBooks(const SimulationInput& input, const StepGraph& step,
                                           const TaskRun& run,
                                           BooksDetail detail = BooksDetail::kCurves);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_STEP_MEMORY_H_
