#ifndef SIPHON_LAUNCH_COMMANDS_TRY_FIX_H_
#define SIPHON_LAUNCH_COMMANDS_TRY_FIX_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launch/commands/plan_fixes.h"
#include "launch/commands/plan_study.h"

namespace siphon {

inline constexpr absl::string_view kCapacityKey = "memory.capacity";

// A change of a job whose plan does not fit.
struct FixToTry {
  std::vector<std::string> settings;  // "section.key=value"
  std::string meaning;                // for people
  PlanningGoal goal = PlanningGoal::kAnyThatFits;
};

// What came of it.
struct TriedFix {
  bool is_job = false;         // else it is refused, whatever room there is
  std::optional<PlanFix> fix;  // if any plan of it fits
  // Else what a worker would need with the best that was found, as the refusal says it: a capacity
  // that may be enough. 0: not known.
  Bytes needs = Bytes(0);
};

// Plans the job of `request`, of which `misfit` was planned, with the change. A plan file is of the
// job as it is, so that none is followed: with no settings the job itself is planned anew. A
// capacity may be more than devices of the topology have; that is PlanFix::devices then. What has
// no room for LeastMemory is not searched.
TriedFix TryFix(const PlanRequest& request, const StudiedPlan& misfit, const FixToTry& change);

// "worker 1 needs 4.36 GiB at its fullest under auto, ..." says 4.36 GiB; 0: it says none.
Bytes NeededByMisfit(absl::string_view misfit);

// What is enough where a worker is said to need `needs`: to a hundredth.
Bytes ALittleMoreThan(Bytes needs);

// Whether more capacity would help the worker: it has less than its peak with everything kept. Of
// workers that keep everything the memory model knows more than that step: where all have as much,
// whether it may have less than `needs`, what the misfit says (0: nothing).
bool LacksMemory(const StudiedPlan& misfit, size_t worker, Bytes needs);

// Exactly, in the largest unit that it is a multiple of: "3MiB".
std::string SizeText(Bytes bytes);

// All that is set for it.
std::vector<std::string> SettingsOfTry(const StudiedPlan& misfit,
                                       std::vector<std::string> settings);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_TRY_FIX_H_
