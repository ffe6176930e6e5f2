#include "pipeline/stage_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "pipeline/program_run.h"
#include "planner/status.h"

namespace siphon {
namespace {

int MicrobatchesOf(const std::vector<Action>& program) {
  int count = 0;
  for (const Action& action : program) {
    if (action.kind == ActionKind::kForward) count = std::max(count, action.microbatch.value + 1);
  }
  return count;
}

}  // namespace

StageWorker::StageWorker(WorkerId me, WorkerLayout layout, std::map<StageId, StageCompute*> stages,
                         Transport* transport, SwapEngine* swaps, ActionObserver observer)
    : me_(me),
      layout_(std::move(layout)),
      stages_(std::move(stages)),
      transport_(transport),
      swaps_(swaps),
      state_(layout_, stages_, swaps),
      host_steps_(layout_, stages_, swaps),
      observer_(std::move(observer)) {
  for (size_t stage = 0; stage < layout_.worker_of_stage.size(); ++stage) {
    SIPHON_CHECK((layout_.worker_of_stage[stage] == me_) ==
                     stages_.contains(StageId(static_cast<int>(stage))),
                 "a worker is given exactly the stages that the layout says");
  }
  SIPHON_CHECK(layout_.owned_parameters.size() == layout_.worker_of_stage.size(),
               "the layout counts the parameters of every stage");
  SIPHON_CHECK(transport_ != nullptr || WorkerCount(layout_) <= 1,
               "workers that are not alone have a transport");
}

absl::StatusOr<StepReport> StageWorker::RunStep(const std::vector<Action>& program,
                                                const StepInputs& inputs, const StepEnd& end) {
  if (failed_) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", me_.value, " cannot go on: an earlier step ended in an error"));
  }
  failed_ = true;  // until the end is reached
  ProgramRun run(me_, layout_, stages_, transport_, swaps_, state_, host_steps_,
                 MicrobatchesOf(program), end);
  run.Mark(&marks_);
  for (const auto& [stage, compute] : stages_) {
    SIPHON_RETURN_IF_ERROR(
        Annotate(compute->BeginStep(inputs),
                 absl::StrCat("worker ", me_.value, " begin of stage ", stage.value)));
  }
  SIPHON_RETURN_IF_ERROR(
      Annotate(run.Begin(program), absl::StrCat("worker ", me_.value, " begin of the step")));
  for (size_t index = 0; index < program.size(); ++index) {
    absl::Status status = observer_ ? observer_(program[index]) : absl::OkStatus();
    if (status.ok()) status = run.Execute(absl::MakeConstSpan(program).subspan(index));
    if (status.ok()) continue;
    return Annotate(status, absl::StrCat("worker ", me_.value, " action ", index, " ",
                                         ToString(program[index])));
  }
  SIPHON_RETURN_IF_ERROR(
      Annotate(run.Drain(), absl::StrCat("worker ", me_.value, " after its last action")));
  failed_ = false;
  return run.TakeReport();
}

}  // namespace siphon
