#include "launch/commands/harmony_job.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/memory/memory_kind.h"

namespace siphon {

std::vector<std::string> HarmonySettings(const HarmonyChoice& choice) {
  const ScheduleOptions& options = choice.shape.options;
  const std::string layers =
      absl::StrJoin(choice.partition.stages, ",", [](std::string* text, const StageRange& stage) {
        absl::StrAppend(text, stage.end - stage.begin);
      });
  return {"pipeline.schedule=harmony_pp",
          absl::StrCat("pipeline.stages=", choice.partition.stages.size()),
          absl::StrCat("pipeline.chunks=", choice.shape.chunks),
          absl::StrCat("pipeline.partition=[", layers, "]"),
          absl::StrCat("pipeline.forward_pack=", options.forward_pack),
          absl::StrCat("pipeline.backward_pack=", options.backward_pack),
          absl::StrCat("pipeline.microbatch_group=", options.microbatch_group),
          absl::StrCat("pipeline.backward_group=", options.backward_group),
          "train.clip_norm=0"};
}

bool TakeFactsOf(const PlanningProblem& changed, PlanningProblem& problem) {
  const std::vector<MemoryByKind> before = problem.held;
  problem.held.resize(std::max(before.size(), changed.held.size()));
  for (size_t worker = 0; worker < changed.held.size(); ++worker) {
    MemoryByKind& held = problem.held[worker];
    if (Total(changed.held[worker]) > Total(held)) held = changed.held[worker];
  }
  const bool is_new = problem.held != before || !(problem.profile == changed.profile);
  problem.profile = changed.profile;
  return is_new;
}

}  // namespace siphon
