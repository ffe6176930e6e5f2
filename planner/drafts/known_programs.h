#ifndef SIPHON_PLANNER_DRAFTS_KNOWN_PROGRAMS_H_
#define SIPHON_PLANNER_DRAFTS_KNOWN_PROGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"

namespace siphon {

struct LoweredPlan {
  Schedule schedule;
  // [worker]: a number that stands for its program together with the plan of its stages, and for
  // nothing else.
  std::vector<int64_t> names;
};

// Lowers memory plans of one schedule, and knows each worker's latest programs: a search changes
// what some of the workers do, and comes back to what they did before.
//
// Invariant: the schedules are those of LowerMemoryPlan.
class KnownPrograms {
 public:
  // The schedule must outlive this.
  explicit KnownPrograms(const Schedule& schedule);
  KnownPrograms(const KnownPrograms&) = delete;
  KnownPrograms& operator=(const KnownPrograms&) = delete;

  // Requires: the options are of the schedule's stages and the plan's layers, none empty.
  // Errors: as LowerMemoryPlan.
  absl::StatusOr<LoweredPlan> Lower(const MemoryPlan& plan, const LowerMemoryOptions& options);

  int lowered() const { return lowered_; }  // programs, without those that were known

 private:
  // All that the actions of a stage follow from.
  struct StageDecisions {
    StagePlan plan;
    SwapTiming timing;
    DirectBackward direct = DirectBackward::kLeave;
    WeightResidence weights = WeightResidence::kWholeActions;
    StateTimes state_times;
    std::vector<int> made_ahead;  // [group]; of activations
    std::vector<int> shares;      // likewise
  };
  struct Program {
    uint64_t key = 0;                     // equal for equal decisions
    uint64_t content = 0;                 // equal for equal actions and plans
    std::vector<StageDecisions> decided;  // [stage of the worker]
    std::vector<Action> actions;
    int64_t name = 0;
  };

  using Index = std::unordered_multimap<uint64_t, std::list<Program>::iterator>;
  // Of one worker.
  struct Known {
    std::list<Program> programs;  // those used last come first
    Index by_key;
    Index by_content;
    size_t most = 0;  // programs to be known
  };

  static StageDecisions DecisionsOf(StageId stage, const MemoryPlan& plan,
                                    const LowerMemoryOptions& options);
  static bool IsOf(const StageDecisions& known, StageId stage, const MemoryPlan& plan,
                   const LowerMemoryOptions& options);
  static bool HaveSamePlans(const Program& a, const Program& b);
  static uint64_t ContentOf(const Program& program);
  static void Forget(std::list<Program>::iterator program, uint64_t hash, Index& index);
  const Program& ProgramOf(int worker, const MemoryPlan& plan, const LowerMemoryOptions& options);
  const Program& Remember(Known& known, Program program);

  const Schedule& schedule_;
  std::vector<std::vector<StageId>> stages_;  // [worker]
  std::vector<Known> known_;                  // [worker]
  int64_t names_ = 0;
  int lowered_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_KNOWN_PROGRAMS_H_
