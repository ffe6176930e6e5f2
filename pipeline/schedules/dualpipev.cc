#include "absl/strings/str_cat.h"
#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/program_writer.h"
#include "planner/status.h"

namespace siphon {
namespace {

// The program of one worker; `down` and `up` are its stages on the two arms of the V.
class DualPipeWorker {
 public:
  DualPipeWorker(Schedule& schedule, const ScheduleShape& shape, int worker)
      : program_(schedule, worker),
        workers_(shape.workers),
        microbatches_(shape.microbatches),
        worker_(worker),
        behind_(shape.workers - 1 - worker),
        down_(worker),
        up_(2 * shape.workers - 1 - worker) {}

  void Write() {
    WarmUp();
    Overlap();
    CoolDown();
  }

 private:
  void WarmUp() {
    for (int i = 0; i < 2 * behind_; ++i) program_.Forward(down_);
    for (int i = 0; i <= worker_; ++i) {
      program_.Forward(down_);
      program_.Forward(up_);
    }
    for (int i = 0; i < behind_; ++i) {
      program_.BackwardInput(up_);
      program_.OldestBackwardWeight();
      program_.Forward(up_);
    }
  }

  // Every forward of one arm together with a backward of the other.
  void Overlap() {
    const int pairs = microbatches_ - 2 * workers_ + worker_ + 1;
    for (int pair = 0; pair < pairs; ++pair) {
      if (pair == 0 && behind_ == 0) {
        // The very first backward: everybody in front waits for it.
        program_.Forward(down_);
        program_.Backward(up_);
      } else {
        program_.ForwardWithBackward(down_, up_);
      }
      program_.ForwardWithBackward(up_, down_);
    }
    for (int i = 0; i < behind_; ++i) {
      program_.Backward(up_);
      program_.ForwardWithBackward(up_, down_);
    }
  }

  // Backwards of both arms in turn, the second half of them split.
  void CoolDown() {
    const int half = worker_ + 1;
    for (int i = 0; i < 2 * half; ++i) Backward(i % 2 == 0 ? up_ : down_, i >= half);
    for (int i = 0; i < behind_; ++i) {
      program_.OldestBackwardWeight();
      Backward(down_, true);
    }
    program_.AllBackwardWeights();
  }

  void Backward(int stage, bool split) {
    if (split) {
      program_.BackwardInput(stage);
    } else {
      program_.Backward(stage);
    }
  }

  ProgramWriter program_;
  const int workers_;
  const int microbatches_;
  const int worker_;
  const int behind_;
  const int down_;
  const int up_;
};

}  // namespace

// DualPipeV: the V-shaped half of DualPipe (DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.1), in
// the order of torch.distributed.pipelining. Compound cells hold a forward and a backward that may
// overlap.
absl::StatusOr<Schedule> BuildDualPipeV(const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, PlaceInV(shape, "dualpipev"));
  if (shape.microbatches < 2 * shape.workers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule dualpipev fills its pipeline first: ", 2 * shape.workers,
        " stages take at least ", 2 * shape.workers, " microbatches, not ", shape.microbatches));
  }
  for (int worker = 0; worker < shape.workers; ++worker) {
    DualPipeWorker(schedule, shape, worker).Write();
  }
  return schedule;
}

}  // namespace siphon
