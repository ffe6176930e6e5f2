#include "pipeline/schedules/builders.h"

namespace siphon {

// Breadth-first pipeline, Lamy-Poirier 2022, arXiv:2211.05953, figure 4(d): every microbatch
// through a chunk before the next chunk. Backwards descend by microbatch, so the newest activations
// go first, and weight gradients add up in descending order.
absl::StatusOr<Schedule> BuildLoopedBfs(const ScheduleShape& shape) {
  Schedule schedule = PlaceInLoop(shape);
  for (int worker = 0; worker < shape.workers; ++worker) {
    std::vector<Action>& program = schedule.programs[worker];
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      const StageId stage(chunk * shape.workers + worker);
      for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
        program.push_back({stage, ActionKind::kForward, MicrobatchId(microbatch)});
      }
    }
    for (int chunk = shape.chunks - 1; chunk >= 0; --chunk) {
      const StageId stage(chunk * shape.workers + worker);
      for (int microbatch = shape.microbatches - 1; microbatch >= 0; --microbatch) {
        program.push_back({stage, ActionKind::kBackward, MicrobatchId(microbatch)});
      }
    }
  }
  return schedule;
}

}  // namespace siphon
