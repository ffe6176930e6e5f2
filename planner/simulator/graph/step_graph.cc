#include "planner/simulator/graph/step_graph.h"

#include <cstddef>
#include <limits>
#include <utility>

#include "planner/simulator/graph/group_residence.h"
#include "planner/simulator/graph/optimizer_steps.h"
#include "planner/simulator/graph/step_boundaries.h"
#include "planner/simulator/graph/step_residence.h"
#include "planner/simulator/graph/step_writer.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kNone = StepWriter::kNone;

// The layers of each stage; a stage of which none are given is one piece.
std::vector<std::vector<LayerCost>> PiecesOf(const SimulationInput& input) {
  if (!input.layers.empty()) return input.layers;
  std::vector<std::vector<LayerCost>> pieces;
  for (const StageCost& cost : input.stages) {
    pieces.push_back({{.forward = cost.forward,
                       .input_backward = cost.input_backward,
                       .weight_backward = cost.weight_backward,
                       .stash = cost.stash,
                       .kept_for_weights = cost.kept_for_weights,
                       .whole_backward = cost.whole_backward}});
  }
  return pieces;
}

class StepGraphBuilder {
 public:
  StepGraphBuilder(const SimulationInput& input, const ScheduleIndex& index, StepGraph space)
      : schedule_(input.schedule),
        pieces_(PiecesOf(input)),
        writer_(input, std::move(space)),
        boundaries_(index, writer_),
        residence_(writer_),
        groups_(writer_),
        steps_(writer_, groups_) {}

  absl::StatusOr<StepGraph> Build() {
    for (int replica = 0; replica < schedule_.replicas; ++replica) {
      for (int worker = 0; worker < WorkerCount(schedule_); ++worker) {
        SIPHON_RETURN_IF_ERROR(WriteProgram(replica, worker));
      }
    }
    writer_.EndPrograms();
    SIPHON_RETURN_IF_ERROR(boundaries_.Connect());
    return writer_.Take();
  }

 private:
  // The tasks of an action, one a layer.
  struct Span {
    int first = kNone;
    int last = kNone;
    void Add(int task) {
      if (first == kNone) first = task;
      last = task;
    }
  };

  absl::Status WriteProgram(int replica, int worker) {
    const std::vector<Action>& program = schedule_.programs[worker];
    last_reduction_ = kNone;
    for (size_t place = 0; place < program.size(); ++place) {
      if (program[place].kind == ActionKind::kReduceGradient) {
        last_reduction_ = static_cast<int>(place);
      }
    }
    writer_.BeginProgram(replica, worker);
    groups_.BeginProgram(WorkerId(worker));
    steps_.BeginProgram();
    for (int place = 0; place < static_cast<int>(program.size()); ++place) {
      writer_.BeginAction(place);
      SIPHON_RETURN_IF_ERROR(Write(program[place], place));
      boundaries_.EndAction();
    }
    steps_.EndProgram();
    return absl::OkStatus();
  }

  absl::Status Write(const Action& action, int place) {
    switch (action.kind) {
      case ActionKind::kForward:
        return WriteForward(action);
      case ActionKind::kBackward:
      case ActionKind::kBackwardInput:
        return WriteInputBackward(action);
      case ActionKind::kBackwardWeight:
        return WriteWeightBackward(action);
      case ActionKind::kSendForward:
        return boundaries_.Send(BoundaryFlow::kForward);
      case ActionKind::kSendBackward:
        return boundaries_.Send(BoundaryFlow::kBackward);
      case ActionKind::kReceiveForward:
        boundaries_.Receive(BoundaryFlow::kForward);
        return absl::OkStatus();
      case ActionKind::kReceiveBackward:
        boundaries_.Receive(BoundaryFlow::kBackward);
        return absl::OkStatus();
      case ActionKind::kReduceGradient:  // all stages of the worker at once, with the last of them
        if (place == last_reduction_) Meet(reduction_);
        return absl::OkStatus();
      case ActionKind::kReduceNorm:
        Meet(norm_);
        return absl::OkStatus();
      case ActionKind::kStep:
        return steps_.Write();
      case ActionKind::kUpdate:
        WriteUpdate(action.stage);
        return absl::OkStatus();
      default:
        return WriteMemoryAction(action);
    }
  }

  absl::Status WriteMemoryAction(const Action& action) {
    if (action.group != kWholeStage) {
      if (groups_.KindOf(action) == GroupKind::kParameters) steps_.WaitForParameters(action.stage);
      return groups_.Move();
    }
    switch (action.kind) {
      case ActionKind::kSwapOut:
        return residence_.StartSwap(CopyDirection::kOut);
      case ActionKind::kSwapOutEnd:
        residence_.EndSwap(CopyDirection::kOut);
        return absl::OkStatus();
      case ActionKind::kSwapIn:
        return residence_.StartSwap(CopyDirection::kIn);
      case ActionKind::kSwapInEnd:
        residence_.EndSwap(CopyDirection::kIn);
        return absl::OkStatus();
      case ActionKind::kDrop:
        return residence_.Drop();
      case ActionKind::kRecompute:
        return WriteRecompute(action);
      default:
        return absl::InternalError("an action of unknown kind");
    }
  }

  // Lets the action wait for what it needs at the layer, or compute it again.
  // `workspace`: what the action has for itself just then.
  absl::Status Prepare(int layer, Bytes workspace, Span& span) {
    if (!groups_.Stops(layer)) return absl::OkStatus();
    // What comes in from another stage is waited for before anything else.
    if (span.first == kNone) span.Add(writer_.AddOnLane(TaskRole::kMarker, Nanos(0)));
    return groups_.Prepare(layer, workspace);
  }

  // The forward of a whole stage again.
  absl::Status WriteRecompute(const Action& action) {
    SIPHON_ASSIGN_OR_RETURN(const Span span, WriteForwardPieces(action.stage));
    residence_.TakeUpInput(span.first);
    return absl::OkStatus();
  }

  absl::StatusOr<Span> WriteForwardPieces(StageId stage) {
    Span span;
    groups_.BeginCompute();
    const std::vector<LayerCost>& pieces = pieces_[stage.value];
    const Bytes workspace = writer_.CostOf(stage).forward_workspace;
    for (int layer = 0; layer < static_cast<int>(pieces.size()); ++layer) {
      SIPHON_RETURN_IF_ERROR(Prepare(layer, workspace, span));
      span.Add(writer_.AddOnLane(TaskRole::kCompute, pieces[layer].forward));
      SIPHON_RETURN_IF_ERROR(groups_.Forward(layer, span.last, pieces[layer].stash));
      SIPHON_RETURN_IF_ERROR(groups_.Leave(layer));
    }
    groups_.EndForward();
    if (span.first != kNone) span.Add(writer_.last());  // it may have waited for what leaves
    writer_.Hold(span.first, span.last, MemoryKind::kWorkspace, workspace);
    return span;
  }

  absl::Status WriteForward(const Action& action) {
    const int copy = boundaries_.CopyIn(BoundaryFlow::kForward);
    SIPHON_ASSIGN_OR_RETURN(const Span span, WriteForwardPieces(action.stage));
    groups_.ReleaseWeights();
    return boundaries_.PassOn(BoundaryFlow::kForward, copy != kNone ? copy : span.first, span.last);
  }

  absl::Status WriteInputBackward(const Action& action) {
    const std::vector<LayerCost>& pieces = pieces_[action.stage.value];
    const StageCost& cost = writer_.CostOf(action.stage);
    const bool whole = action.kind == ActionKind::kBackward;
    const int copy = boundaries_.CopyIn(BoundaryFlow::kBackward);
    Span span;
    groups_.BeginCompute();
    const int last = static_cast<int>(pieces.size()) - 1;
    // From its begin on it has the workspace that its first layer leaves it.
    const Bytes workspace = PassWorkspace(cost, action.kind, GrowthAt(action, last));
    Bytes left = workspace;
    Bytes grown;
    for (int layer = last; layer >= 0; --layer) {
      SIPHON_RETURN_IF_ERROR(Prepare(layer, left, span));
      const LayerCost& piece = pieces[layer];
      span.Add(writer_.AddOnLane(TaskRole::kCompute,
                                 whole ? WholeBackward(piece) : piece.input_backward));
      const Bytes growth = GrowthAt(action, layer);
      grown += growth;
      const Bytes before = std::exchange(left, PassWorkspace(cost, action.kind, grown));
      WriteGrowth(span.last, growth, left - before);
      SIPHON_RETURN_IF_ERROR(groups_.Leave(layer));
    }
    writer_.Change(span.first, TaskMoment::kBegin, MemoryKind::kWorkspace, workspace);
    writer_.Change(span.last, TaskMoment::kEnd, MemoryKind::kWorkspace, left * -1);
    groups_.ReleaseWeights();
    if (!whole) residence_.KeepForWeightsOnly();
    return boundaries_.PassOn(BoundaryFlow::kBackward, copy != kNone ? copy : span.first,
                              span.last);
  }

  // What a B or I makes the activations larger at the layer; mostly less than 0.
  Bytes GrowthAt(const Action& action, int layer) const {
    const std::vector<LayerCost>& pieces = pieces_[action.stage.value];
    const bool whole = action.kind == ActionKind::kBackward;
    const Bytes kept = whole ? Bytes(0) : pieces[layer].kept_for_weights;
    return kept - FreedByBackward(pieces, layer);
  }

  // `task` is the layer's. What becomes less does so first.
  void WriteGrowth(int task, Bytes activations, Bytes workspace) {
    if (activations > Bytes(0)) {
      // Gradients queued for W may be larger than what the I frees: then they need room first.
      writer_.Change(task, TaskMoment::kBegin, MemoryKind::kWorkspace, workspace);
      writer_.Change(task, TaskMoment::kBegin, MemoryKind::kActivations, activations);
    } else {
      writer_.Change(task, TaskMoment::kEnd, MemoryKind::kActivations, activations);
      writer_.Change(task, TaskMoment::kEnd, MemoryKind::kWorkspace, workspace);
    }
  }

  absl::Status WriteWeightBackward(const Action& action) {
    const std::vector<LayerCost>& pieces = pieces_[action.stage.value];
    const Bytes workspace = PassWorkspace(writer_.CostOf(action.stage), action.kind);
    Span span;
    groups_.BeginCompute();
    for (int layer = static_cast<int>(pieces.size()) - 1; layer >= 0; --layer) {
      SIPHON_RETURN_IF_ERROR(Prepare(layer, workspace, span));
      span.Add(writer_.AddOnLane(TaskRole::kCompute, pieces[layer].weight_backward));
      writer_.Change(span.last, TaskMoment::kEnd, MemoryKind::kActivations,
                     pieces[layer].kept_for_weights * -1);
      SIPHON_RETURN_IF_ERROR(groups_.Leave(layer));
    }
    writer_.Hold(span.first, span.last, MemoryKind::kWorkspace, workspace);
    groups_.ReleaseWeights();
    return absl::OkStatus();
  }

  // Waits for all other workers that come to the same meeting: a message to one of them and back.
  void Meet(int& meeting) {
    if (meeting == kNone) {
      const Nanos latency = writer_.input().transport.latency;
      meeting = writer_.AddMeeting(writer_.workers() > 1 ? latency * 2 : Nanos(0));
    }
    writer_.AddDependency(meeting, writer_.last());
    writer_.Wait(writer_.AddOnLane(TaskRole::kMarker, Nanos(0)), meeting);
  }

  void WriteUpdate(StageId stage) {
    groups_.PrepareStep({0, std::numeric_limits<int>::max()});
    groups_.StashWeights(writer_.AddOnLane(TaskRole::kCompute, writer_.CostOf(stage).step));
  }

  const Schedule& schedule_;
  const std::vector<std::vector<LayerCost>> pieces_;  // [stage]
  StepWriter writer_;
  StepBoundaries boundaries_;
  StepResidence residence_;
  GroupResidence groups_;
  OptimizerSteps steps_;
  int reduction_ = kNone;  // where all workers meet
  int norm_ = kNone;
  // Of the program that is being written:
  int last_reduction_ = kNone;
};

}  // namespace

void StepGraph::Clear() {
  graph.Clear();
  origins.clear();
  changes.clear();
  lane_names.clear();
  workers = 0;
}

absl::StatusOr<StepGraph> BuildStepGraph(const SimulationInput& input, const ScheduleIndex& index,
                                         StepGraph space) {
  space.Clear();
  return StepGraphBuilder(input, index, std::move(space)).Build();
}

}  // namespace siphon
