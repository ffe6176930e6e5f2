#ifndef SIPHON_PIPELINE_PROGRAM_RUN_H_
#define SIPHON_PIPELINE_PROGRAM_RUN_H_

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pipeline/boundary_transfers.h"
#include "pipeline/group_swaps.h"
#include "pipeline/host_steps.h"
#include "pipeline/stage_worker.h"
#include "pipeline/state_swaps.h"
#include "pipeline/step_agreement.h"
#include "pipeline/step_recorder.h"

namespace siphon {

// Everything that lives for one step of a StageWorker: which transfers are under way, what was
// agreed on, the times.
//
// Thread-safety: one thread. The arguments outlive the run.
class ProgramRun {
 public:
  // Takes over the watch of the stages while it lives. `swaps` may be null when nothing moves.
  ProgramRun(WorkerId me, const WorkerLayout& layout,
             const std::map<StageId, StageCompute*>& stages, Transport* transport,
             SwapEngine* swaps, StateSwaps& state, HostSteps& host_steps, int microbatches,
             const StepEnd& end);
  ~ProgramRun();
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  // Before the first action, behind BeginStep of the stages. Errors of this and what follows: as
  // StageWorker::RunStep, without the action's name.
  absl::Status Begin(const std::vector<Action>& program) { return swaps_.Begin(program); }
  // Before all others.
  void Mark(const ProfilerMarks* marks) { recorder_.Mark(marks); }
  // The first of what is left of the program.
  absl::Status Execute(absl::Span<const Action> rest);
  // To be called after the last action: waits for sends under way, and looks that nothing is left
  // over.
  absl::Status Drain();
  StepReport TakeReport();

 private:
  // Of one stage: writes down what it computes again as RECOMPUTE of the group, and tells the
  // swaps.
  class Watcher final : public PassWatch {
   public:
    Watcher(ProgramRun& run, StageId stage) : run_(run), stage_(stage) {}
    absl::Status Enter(int layer) override { return run_.state_.Enter(stage_, layer); }
    absl::Status Leave(int layer) override { return run_.state_.Leave(stage_, layer); }
    absl::Status BeginRecompute(MicrobatchId microbatch, StageRange layers) override;
    void EndRecompute() override { run_.recorder_.EndPart(); }
    absl::Status Saved(MicrobatchId microbatch, StageRange layers) override {
      return run_.swaps_.Saved(stage_, microbatch, layers);
    }
    absl::Status Need(MicrobatchId microbatch, StageRange layers) override {
      return run_.swaps_.Need(stage_, microbatch, layers);
    }

   private:
    ProgramRun& run_;
    const StageId stage_;
  };

  absl::Status Dispatch(const Action& action);
  absl::Status Compute(const Action& action);
  // Runs the pass, and waits for what it takes in.
  absl::Status Forward(StageCompute& compute, const Action& action);
  absl::Status BackwardToInput(StageCompute& compute, const Action& action);
  absl::Status DropOrRecompute(const Action& action);
  absl::Status ReduceGradient(StageId stage);
  absl::Status ReduceNorm();
  absl::Status Step(const Action& action);
  // Of the losses' gradients, without the loss scale. Requires: it was agreed on.
  double GradientNorm() const;
  // Whether the step is skipped.
  bool Overflowed() const;
  // SWAP_*, DROP of a group that belongs to no microbatch.
  absl::Status MoveState(const Action& action);

  absl::Status NothingLeft() const;
  // The last stage's losses so far; empty on the workers that do not hold it.
  std::vector<float> LossesHere() const;

  const WorkerId me_;
  const WorkerLayout& layout_;
  const std::map<StageId, StageCompute*>& stages_;
  Transport* const transport_;
  const int microbatches_;
  const StepEnd& end_;

  StepRecorder recorder_;
  BoundaryTransfers boundaries_;
  GroupSwaps swaps_;
  StateSwaps& state_;
  HostSteps& host_steps_;
  std::map<StageId, Watcher> watchers_;
  std::set<StageId> unreduced_;  // stages here whose shared gradients are still to be added
  // Gradient norms of stages that have had their optimizer step before all agreed on the norm.
  std::map<StageId, std::vector<float>> stepped_norms_;
  std::optional<StepAgreement> agreement_;
  int peak_live_ = 0;
  // Microbatches of stages whose lives end within the compute cell under way; what stands in one
  // cell counts as happening at the same time.
  int ending_ = 0;
  bool within_cell_ = false;  // the next action belongs to the cell of the one before
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_PROGRAM_RUN_H_
