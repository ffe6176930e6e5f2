#include "pipeline/schedules/harmony_packs.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/program_writer.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status CheckSize(absl::string_view schedule, absl::string_view option, int size,
                       absl::string_view what, int most) {
  if (size >= 1 && size <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("schedule ", schedule, ": ", option, " is ", size,
                                                 "; there are ", most, " ", what, ", so give 1 to ",
                                                 most));
}

struct Pack {
  int begin;  // stages
  int end;
};

std::vector<Pack> PacksOf(int stages, int size) {
  std::vector<Pack> packs;
  for (int begin = 0; begin < stages; begin += size) {
    packs.push_back({begin, std::min(begin + size, stages)});
  }
  return packs;
}

}  // namespace

absl::Status CheckHarmonyOptions(const ScheduleShape& shape, absl::string_view name, int stages) {
  const ScheduleOptions& options = shape.options;
  SIPHON_RETURN_IF_ERROR(CheckSize(name, "forward_pack", options.forward_pack, "stages", stages));
  SIPHON_RETURN_IF_ERROR(CheckSize(name, "backward_pack", options.backward_pack, "stages", stages));
  const auto check_group = [&](absl::string_view option, int group) {
    if (group == 0) return absl::OkStatus();
    return CheckSize(name, option, group, "microbatches", shape.microbatches);
  };
  SIPHON_RETURN_IF_ERROR(check_group("microbatch_group", options.microbatch_group));
  return check_group("backward_group", options.backward_group);
}

void WriteHarmonyPacks(Schedule& schedule, const ScheduleOptions& options) {
  const int stages = StageCount(schedule);
  const int forward_group =
      options.microbatch_group == 0 ? schedule.microbatches : options.microbatch_group;
  const int backward_group = options.backward_group == 0 ? forward_group : options.backward_group;
  std::vector<ProgramWriter> writers;
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    writers.emplace_back(schedule, worker);
  }
  const auto writer_of = [&](const Pack& pack) -> ProgramWriter& {
    return writers[schedule.worker_of_stage[pack.begin].value];
  };
  const std::vector<Pack> forward_packs = PacksOf(stages, options.forward_pack);
  for (int done = 0; done < schedule.microbatches; done += forward_group) {
    const int until = std::min(done + forward_group, schedule.microbatches);
    for (const Pack& pack : forward_packs) {
      for (int i = done; i < until; ++i) {
        for (int stage = pack.begin; stage < pack.end; ++stage) writer_of(pack).Forward(stage);
      }
    }
  }
  std::vector<Pack> backward_packs = PacksOf(stages, options.backward_pack);
  std::reverse(backward_packs.begin(), backward_packs.end());
  for (int done = 0; done < schedule.microbatches; done += backward_group) {
    const int until = std::min(done + backward_group, schedule.microbatches);
    for (const Pack& pack : backward_packs) {
      for (int i = done; i < until; ++i) {
        for (int stage = pack.end - 1; stage >= pack.begin; --stage)
          writer_of(pack).Backward(stage);
      }
      if (until < schedule.microbatches) continue;
      for (int stage = pack.end - 1; stage >= pack.begin; --stage) writer_of(pack).Step(stage);
    }
  }
}

}  // namespace siphon
