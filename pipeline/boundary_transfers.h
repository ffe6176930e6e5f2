#ifndef SIPHON_PIPELINE_BOUNDARY_TRANSFERS_H_
#define SIPHON_PIPELINE_BOUNDARY_TRANSFERS_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipeline/stage_compute.h"
#include "pipeline/step_recorder.h"
#include "pipeline/transport/transport.h"
#include "pipeline/worker_layout.h"

namespace siphon {

// The stage's numbers. Errors: FailedPrecondition where another worker holds it: names those that
// are here.
absl::StatusOr<StageCompute*> FindStage(const std::map<StageId, StageCompute*>& stages,
                                        StageId stage);

// What crosses the boundaries between a worker's stages and their neighbours in one step: messages
// to and from other workers, copies between stages that it holds both.
//
// Thread-safety: one thread. The arguments outlive it.
class BoundaryTransfers {
 public:
  // `transport` may be null where no stage has a neighbour on another worker.
  BoundaryTransfers(WorkerId me, const WorkerLayout& layout,
                    const std::map<StageId, StageCompute*>& stages, Transport* transport,
                    StepRecorder& recorder);

  // Before the first action of `rest`, which may be a send that keeps the device busy: memory for
  // what is received right behind it.
  absl::Status TakeReceiveMemory(absl::Span<const Action> rest);
  // SEND_F, SEND_B and RECV_F, RECV_B. Errors: FailedPrecondition where the neighbour is not on
  // another worker, or what is to be received is under way already; as the transport.
  absl::Status StartSend(const Action& action);
  absl::Status StartReceive(const Action& action);

  // Makes what the F, B or I takes in complete, its input or the gradient of its output, wherever
  // it comes from. Errors: FailedPrecondition where nothing was received; as the transport.
  absl::Status ProvideFor(const Action& action);
  // Waits, and writes down the time if there is any.
  absl::Status Await(TransferId transfer);

  // Gives back the buffers of sends that are through; of all, which it then waits for.
  absl::Status ReleaseFinishedSends();
  absl::Status FinishSends();
  // What was received and not used, in words.
  std::vector<std::string> Unused() const;

 private:
  // A boundary of one stage and microbatch.
  using Place = std::tuple<StageId, Boundary, MicrobatchId>;
  struct Sending {
    TransferId transfer;
    Place place;
  };

  absl::Status Provide(const Place& place, StageId neighbour);
  absl::Status CopyFromNeighbour(const Place& place, StageId neighbour);
  bool HasStage(StageId stage) const { return stages_.contains(stage); }
  bool IsElsewhere(StageId stage) const;

  const WorkerId me_;
  const WorkerLayout& layout_;
  const std::map<StageId, StageCompute*>& stages_;
  Transport* const transport_;
  StepRecorder& recorder_;
  std::map<Place, TransferId> receives_;
  std::vector<Sending> sends_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_BOUNDARY_TRANSFERS_H_
