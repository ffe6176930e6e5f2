#ifndef SIPHON_LAUNCH_COMMANDS_MEMORY_REPORT_H_
#define SIPHON_LAUNCH_COMMANDS_MEMORY_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/commands/plan_fixes.h"
#include "launch/plan_job/job_memory.h"

namespace siphon {

// What `siphon memory` found out about a job.
struct MemoryReport {
  JobConfig job;
  ModelSpec model;
  TrainingPlan plan;
  Accounting accounting = Accounting::kRuntime;
  MemoryEstimate estimate;
  // Where not everything that is kept fits: changes with which it does, and the memory.strategy
  // that makes room without them.
  std::vector<FittingChange> changes;
  std::string fitting_strategy;  // empty: none
  TriedFixes tried;              // then this is what `siphon plan` says would fit
};

enum class MemoryDetail { kStages, kLayers };

// For people: bytes of each stage by kind, sums, what is free of the capacity or what to change;
// with kLayers each layer and saved tensor too.
std::string MemoryText(const MemoryReport& report, MemoryDetail detail);
// One object with the contract's fields, and beside them workers[], accounting, fits (with
// everything kept), fitting_strategy where that makes room instead, and changes[]: those that
// siphon plan names or, with a fitting_strategy, those that keep everything.
std::string MemoryJson(const MemoryReport& report, MemoryDetail detail);

// Our figures beside MPress's Tables I and II, and where the paper contradicts itself. Errors: as
// of BuildSchedule and EstimatePublished.
absl::StatusOr<std::string> PublishedText();
absl::StatusOr<std::string> PublishedJson();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_MEMORY_REPORT_H_
