#include "planner/simulator/step_graph.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/marked_grid.h"
#include "planner/simulator/step_resources.h"
#include "planner/simulator/version_book.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kNone = -1;

// What crosses a boundary between two stages: outputs to the next, gradients to the previous one.
enum Flow { kForwardFlow, kBackwardFlow };
constexpr Flow kFlows[] = {kForwardFlow, kBackwardFlow};

ActionKind SendKind(Flow flow) {
  return flow == kForwardFlow ? ActionKind::kSendForward : ActionKind::kSendBackward;
}
ActionKind ReceiveKind(Flow flow) {
  return flow == kForwardFlow ? ActionKind::kReceiveForward : ActionKind::kReceiveBackward;
}

bool IsLowered(const Schedule& schedule) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [](const auto& program) {
    return std::any_of(program.begin(), program.end(),
                       [](const Action& action) { return IsCommunication(action.kind); });
  });
}

// The tasks of one (stage, microbatch) of one replica that others refer to.
struct Cell {
  int first[2] = {kNone, kNone};    // [flow]: of the action that needs what comes in
  int last[2] = {kNone, kNone};     // [flow]: of the action that makes what goes out
  int message[2] = {kNone, kNone};  // [flow]: that comes in
  int posted[2] = {kNone, kNone};   // [flow]: behind which the buffer for it is there
  std::vector<int> copies;          // of the swap under way
  bool only_weights = false;        // I has run, W has not
};

class StepGraphBuilder {
 public:
  StepGraphBuilder(const SimulationInput& input, const ScheduleIndex& index)
      : input_(input),
        schedule_(input.schedule),
        index_(index),
        lowered_(IsLowered(schedule_)),
        pieces_(input.layers),
        resources_(input.topology, input.transport, input.device_of_worker, result_.graph),
        cells_(static_cast<size_t>(schedule_.replicas) * StageCount(schedule_) *
               schedule_.microbatches),
        exchanges_(StageCount(schedule_), kNone) {
    result_.workers = schedule_.replicas * WorkerCount(schedule_);
    for (size_t stage = pieces_.size(); stage < input.stages.size(); ++stage) {
      const StageCost& cost = input.stages[stage];
      pieces_.push_back({{.forward = cost.forward,
                          .input_backward = cost.input_backward,
                          .weight_backward = cost.weight_backward,
                          .stash = cost.stash,
                          .kept_for_weights = cost.kept_for_weights}});
    }
  }

  absl::StatusOr<StepGraph> Build() {
    for (replica_ = 0; replica_ < schedule_.replicas; ++replica_) {
      for (int worker = 0; worker < WorkerCount(schedule_); ++worker) {
        SIPHON_RETURN_IF_ERROR(WalkProgram(worker));
      }
    }
    for (replica_ = 0; replica_ < schedule_.replicas; ++replica_) {
      SIPHON_RETURN_IF_ERROR(Connect());
    }
    result_.lane_names = resources_.lane_names();
    return std::move(result_);
  }

 private:
  const StageCost& CostOf(StageId stage) const { return input_.stages[stage.value]; }
  Cell& At(StageId stage, MicrobatchId microbatch) {
    return cells_[(static_cast<size_t>(replica_) * StageCount(schedule_) + stage.value) *
                      schedule_.microbatches +
                  microbatch.value];
  }
  int Account(int worker) const { return replica_ * WorkerCount(schedule_) + worker; }
  int WorkerOf(StageId stage) const { return schedule_.worker_of_stage[stage.value].value; }
  bool Exists(StageId stage) const {
    return stage.value >= 0 && stage.value < StageCount(schedule_);
  }
  static StageId Target(StageId stage, Flow flow) {
    return StageId(stage.value + (flow == kForwardFlow ? 1 : -1));
  }
  // Of what comes in at this stage, and of what goes out.
  Bytes Incoming(StageId stage, Flow flow) const {
    return flow == kForwardFlow ? CostOf(stage).input : CostOf(stage).output;
  }
  Bytes Outgoing(StageId stage, Flow flow) const {
    return flow == kForwardFlow ? CostOf(stage).output : CostOf(stage).input;
  }
  absl::Status Bad(ActionPosition where, absl::string_view sentence) const {
    return ScheduleError(schedule_, where, sentence);
  }

  // The next task of the worker whose program is being walked.
  int AddOnLane(TaskRole role, Nanos duration) {
    last_ = result_.graph.AddTask(resources_.ComputeLane(Account(worker_)), duration).value;
    result_.origins.push_back({.role = role, .worker = Account(worker_), .place = place_});
    return last_;
  }
  int AddCopy(TaskRole role, const Route& route, Bytes bytes) {
    const TaskId task = result_.graph.AddCopy(route.lane, bytes, route.latency, route.path);
    result_.origins.push_back({.role = role, .worker = Account(worker_), .place = place_});
    result_.graph.AddDependency(task, TaskId(last_));
    return task.value;
  }
  int AddMeeting(Nanos duration) {
    const TaskId task = result_.graph.AddTask(std::nullopt, duration);
    result_.origins.push_back({.role = TaskRole::kExchange});
    return task.value;
  }
  void Wait(int task, int provider) {
    result_.graph.AddDependency(TaskId(task), TaskId(provider));
    result_.origins[task].provider = provider;
  }
  void Change(int task, TaskMoment moment, MemoryKind kind, Bytes bytes) {
    ChangeAt(Account(worker_), task, moment, kind, bytes);
  }
  void ChangeAt(int account, int task, TaskMoment moment, MemoryKind kind, Bytes bytes) {
    if (bytes == Bytes(0)) return;
    result_.changes.push_back({.task = task,
                               .moment = moment,
                               .kind = kind,
                               .account = account,
                               .worker = Account(worker_),
                               .place = place_,
                               .bytes = bytes});
  }
  void Hold(int first, int last, MemoryKind kind, Bytes bytes) {
    Change(first, TaskMoment::kBegin, kind, bytes);
    Change(last, TaskMoment::kEnd, kind, bytes * -1);
  }

  absl::Status WalkProgram(int worker) {
    worker_ = worker;
    place_ = kNone;
    const std::vector<Action>& program = schedule_.programs[worker];
    last_reduction_ = kNone;
    for (size_t place = 0; place < program.size(); ++place) {
      if (program[place].kind == ActionKind::kReduceGradient) {
        last_reduction_ = static_cast<int>(place);
      }
    }
    versions_ = OpenVersionBooks(schedule_, WorkerId(worker));
    AddOnLane(TaskRole::kMarker, Nanos(0));  // what comes before the first action waits for it
    for (place_ = 0; place_ < static_cast<int>(program.size()); ++place_) {
      SIPHON_RETURN_IF_ERROR(Add(program[place_]));
    }
    return absl::OkStatus();
  }

  absl::Status Add(const Action& action) {
    switch (action.kind) {
      case ActionKind::kForward:
        return AddForward(action);
      case ActionKind::kBackward:
      case ActionKind::kBackwardInput:
        return AddInputBackward(action);
      case ActionKind::kBackwardWeight:
        AddWeightBackward(action);
        return absl::OkStatus();
      case ActionKind::kSendForward:
        return AddMessage(action.stage, action.microbatch, kForwardFlow);
      case ActionKind::kSendBackward:
        return AddMessage(action.stage, action.microbatch, kBackwardFlow);
      case ActionKind::kReceiveForward:
        Post(action.stage, action.microbatch, kForwardFlow);
        return absl::OkStatus();
      case ActionKind::kReceiveBackward:
        Post(action.stage, action.microbatch, kBackwardFlow);
        return absl::OkStatus();
      case ActionKind::kReduceGradient:
        if (place_ == last_reduction_) Meet(reduction_);
        return absl::OkStatus();
      case ActionKind::kReduceNorm:
        Meet(norm_);
        return absl::OkStatus();
      case ActionKind::kStep:
        return AddStep(action.stage);
      case ActionKind::kUpdate:
        AddUpdate(action.stage);
        return absl::OkStatus();
      case ActionKind::kSwapOut:
        return StartSwap(action, CopyDirection::kOut);
      case ActionKind::kSwapOutEnd:
        EndSwap(action, CopyDirection::kOut);
        return absl::OkStatus();
      case ActionKind::kSwapIn:
        return StartSwap(action, CopyDirection::kIn);
      case ActionKind::kSwapInEnd:
        EndSwap(action, CopyDirection::kIn);
        return absl::OkStatus();
      case ActionKind::kDrop:
        return AddDrop(action);
      case ActionKind::kRecompute:
        AddRecompute(action);
        return absl::OkStatus();
    }
    return absl::InternalError("an action of unknown kind");
  }

  // Forward through all layers: the first task and the last.
  std::pair<int, int> AddForwardPieces(StageId stage) {
    int first = kNone;
    for (const LayerCost& piece : pieces_[stage.value]) {
      const int task = AddOnLane(TaskRole::kCompute, piece.forward);
      if (first == kNone) first = task;
      Change(task, TaskMoment::kBegin, MemoryKind::kActivations, piece.stash);
    }
    Hold(first, last_, MemoryKind::kWorkspace, CostOf(stage).forward_workspace);
    return {first, last_};
  }

  absl::Status AddForward(const Action& action) {
    const auto [first, last] = AddForwardPieces(action.stage);
    versions_[action.stage.value].Use(action.microbatch);
    return PassOn(action, kForwardFlow, first, last);
  }

  absl::Status AddInputBackward(const Action& action) {
    const bool whole = action.kind == ActionKind::kBackward;
    const std::vector<LayerCost>& pieces = pieces_[action.stage.value];
    int first = kNone;
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      const int task =
          AddOnLane(TaskRole::kCompute,
                    whole ? piece->input_backward + piece->weight_backward : piece->input_backward);
      if (first == kNone) first = task;
      const Bytes left = whole ? Bytes(0) : piece->kept_for_weights;
      const Bytes change = left - piece->stash;
      Change(task, change > Bytes(0) ? TaskMoment::kBegin : TaskMoment::kEnd,
             MemoryKind::kActivations, change);
    }
    Hold(first, last_, MemoryKind::kWorkspace, CostOf(action.stage).backward_workspace);
    if (whole) {
      ReleaseVersion(action);
    } else {
      At(action.stage, action.microbatch).only_weights = true;
    }
    return PassOn(action, kBackwardFlow, first, last_);
  }

  void AddWeightBackward(const Action& action) {
    const std::vector<LayerCost>& pieces = pieces_[action.stage.value];
    int first = kNone;
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      const int task = AddOnLane(TaskRole::kCompute, piece->weight_backward);
      if (first == kNone) first = task;
      Change(task, TaskMoment::kEnd, MemoryKind::kActivations, piece->kept_for_weights * -1);
    }
    Hold(first, last_, MemoryKind::kWorkspace, CostOf(action.stage).backward_workspace);
    ReleaseVersion(action);
  }

  void ReleaseVersion(const Action& action) {
    if (versions_[action.stage.value].Release(action.microbatch)) {
      Change(last_, TaskMoment::kEnd, MemoryKind::kWeightVersions,
             CostOf(action.stage).parameters * -1);
    }
  }

  // The action takes what came in, and gives what it made to the neighbouring stage.
  absl::Status PassOn(const Action& action, Flow flow, int first, int last) {
    Cell& cell = At(action.stage, action.microbatch);
    cell.first[flow] = first;
    cell.last[flow] = last;
    const StageId source =
        Target(action.stage, flow == kForwardFlow ? kBackwardFlow : kForwardFlow);
    if (Exists(source)) {
      Change(last, TaskMoment::kEnd, MemoryKind::kBoundary, Incoming(action.stage, flow) * -1);
    }
    const StageId target = Target(action.stage, flow);
    if (!Exists(target)) return absl::OkStatus();
    Change(last, TaskMoment::kBegin, MemoryKind::kBoundary, Outgoing(action.stage, flow));
    if (lowered_ || WorkerOf(target) == worker_) return absl::OkStatus();
    return AddMessage(action.stage, action.microbatch, flow);
  }

  absl::Status AddMessage(StageId stage, MicrobatchId microbatch, Flow flow) {
    const StageId target = Target(stage, flow);
    if (!Exists(target) || WorkerOf(target) == worker_) {
      return Bad(
          {worker_, place_},
          absl::StrCat("worker ", worker_, " has ", ToString(schedule_.programs[worker_][place_]),
                       ", but stage ", target.value, " is not on another worker"));
    }
    const int maker = At(stage, microbatch).last[flow];
    if (maker == kNone) {
      return Bad({worker_, place_}, absl::StrCat("worker ", worker_, " has ",
                                                 ToString(schedule_.programs[worker_][place_]),
                                                 " before what it sends is computed"));
    }
    const int receiver = Account(WorkerOf(target));
    SIPHON_ASSIGN_OR_RETURN(
        const Route route,
        resources_.Message(Account(worker_), receiver,
                           flow == kForwardFlow ? Channel::kForward : Channel::kBackward));
    const Bytes bytes = Outgoing(stage, flow);
    const int message = AddCopy(TaskRole::kMessage, route, bytes);
    result_.origins[message].provider = maker;
    Change(message, TaskMoment::kEnd, MemoryKind::kBoundary, bytes * -1);
    if (!lowered_) ChangeAt(receiver, message, TaskMoment::kBegin, MemoryKind::kBoundary, bytes);
    At(target, microbatch).message[flow] = message;
    return absl::OkStatus();
  }

  void Post(StageId stage, MicrobatchId microbatch, Flow flow) {
    At(stage, microbatch).posted[flow] = last_;
    Change(last_, TaskMoment::kEnd, MemoryKind::kBoundary, Incoming(stage, flow));
  }

  // Waits for all other workers that come to the same meeting: a message to one of them and back.
  void Meet(int& meeting) {
    if (meeting == kNone) {
      meeting = AddMeeting(result_.workers > 1 ? input_.transport.latency * 2 : Nanos(0));
    }
    result_.graph.AddDependency(TaskId(meeting), TaskId(last_));
    Wait(AddOnLane(TaskRole::kMarker, Nanos(0)), meeting);
  }

  absl::Status AddStep(StageId stage) {
    int arrived = kNone;
    if (schedule_.replicas > 1) {
      int& meeting = exchanges_[stage.value];
      if (meeting == kNone) meeting = AddMeeting(Nanos(0));
      SIPHON_ASSIGN_OR_RETURN(const Route out,
                              resources_.HostCopy(Account(worker_), CopyDirection::kOut));
      const Bytes gradients = CostOf(stage).gradients;
      result_.graph.AddDependency(TaskId(meeting),
                                  TaskId(AddCopy(TaskRole::kExchange, out, gradients)));
      SIPHON_ASSIGN_OR_RETURN(const Route in,
                              resources_.HostCopy(Account(worker_), CopyDirection::kIn));
      arrived = AddCopy(TaskRole::kExchange, in, gradients);
      Wait(arrived, meeting);
    }
    const int step = AddOnLane(TaskRole::kCompute, CostOf(stage).step);
    if (arrived != kNone) Wait(step, arrived);
    return absl::OkStatus();
  }

  void AddUpdate(StageId stage) {
    const int update = AddOnLane(TaskRole::kCompute, CostOf(stage).step);
    if (versions_[stage.value].Update()) {
      Change(update, TaskMoment::kBegin, MemoryKind::kWeightVersions, CostOf(stage).parameters);
    }
  }

  Bytes LiveBytes(const Action& action) {
    return At(action.stage, action.microbatch).only_weights ? CostOf(action.stage).kept_for_weights
                                                            : CostOf(action.stage).stash;
  }

  absl::Status StartSwap(const Action& action, CopyDirection direction) {
    const Bytes bytes = LiveBytes(action);
    if (direction == CopyDirection::kIn) {
      Change(last_, TaskMoment::kEnd, MemoryKind::kActivations, bytes);
    }
    if (input_.lenders.empty() || input_.lenders[action.stage.value].empty()) {
      SIPHON_ASSIGN_OR_RETURN(const Route route, resources_.HostCopy(Account(worker_), direction));
      AddSwapCopy(action, direction, route, result_.workers, bytes);
      return absl::OkStatus();
    }
    const std::vector<SwapShare>& shares = input_.lenders[action.stage.value];
    int64_t weights = 0;
    for (const SwapShare& share : shares) weights += share.weight;
    int64_t weight_before = 0;
    for (const SwapShare& share : shares) {
      SIPHON_ASSIGN_OR_RETURN(const Route route,
                              resources_.PeerCopy(Account(worker_), share.lender, direction));
      // Cut at rounded places, so that the parts add up.
      const Bytes begin(CutAt(bytes, weight_before, weights));
      weight_before += share.weight;
      const Bytes end(CutAt(bytes, weight_before, weights));
      AddSwapCopy(action, direction, route, AccountOf(share.lender), end - begin);
    }
    return absl::OkStatus();
  }

  static int64_t CutAt(Bytes bytes, int64_t weight, int64_t weights) {
    return static_cast<int64_t>(absl::Uint128Low64(absl::uint128(bytes.value) *
                                                   absl::uint128(weight) / absl::uint128(weights)));
  }

  // Of the device's worker; the lender's memory is nobody's account when it has none.
  int AccountOf(DeviceId device) const {
    const auto& devices = input_.device_of_worker;
    const auto found = std::find(devices.begin(), devices.end(), device);
    return found == devices.end() ? kNone : static_cast<int>(found - devices.begin());
  }

  void AddSwapCopy(const Action& action, CopyDirection direction, const Route& route, int account,
                   Bytes bytes) {
    const int copy = AddCopy(TaskRole::kSwap, route, bytes);
    At(action.stage, action.microbatch).copies.push_back(copy);
    if (account == kNone) return;
    if (direction == CopyDirection::kOut) {
      ChangeAt(account, copy, TaskMoment::kBegin, MemoryKind::kActivations, bytes);
    } else {
      ChangeAt(account, copy, TaskMoment::kEnd, MemoryKind::kActivations, bytes * -1);
    }
  }

  void EndSwap(const Action& action, CopyDirection direction) {
    const int end = AddOnLane(TaskRole::kMarker, Nanos(0));
    std::vector<int>& copies = At(action.stage, action.microbatch).copies;
    for (const int copy : copies) Wait(end, copy);
    copies.clear();
    if (direction == CopyDirection::kOut) {
      Change(end, TaskMoment::kEnd, MemoryKind::kActivations, LiveBytes(action) * -1);
    }
  }

  // What RECOMPUTE starts from stays.
  static Bytes KeptInput(const StageCost& cost) { return std::min(cost.input, cost.stash); }

  absl::Status AddDrop(const Action& action) {
    if (At(action.stage, action.microbatch).only_weights) {
      return Bad({worker_, place_},
                 absl::StrCat("worker ", worker_, " has ", ToString(action),
                              " behind the I: what W needs then cannot be computed again"));
    }
    const StageCost& cost = CostOf(action.stage);
    Change(last_, TaskMoment::kEnd, MemoryKind::kActivations, KeptInput(cost) - cost.stash);
    return absl::OkStatus();
  }

  void AddRecompute(const Action& action) {
    const auto [first, last] = AddForwardPieces(action.stage);
    Change(first, TaskMoment::kBegin, MemoryKind::kActivations,
           KeptInput(CostOf(action.stage)) * -1);
  }

  // Ties each action to the one on another worker, or another stage, that it needs.
  absl::Status Connect() {
    for (int stage = 0; stage < StageCount(schedule_); ++stage) {
      for (int microbatch = 0; microbatch < schedule_.microbatches; ++microbatch) {
        for (const Flow flow : kFlows) {
          SIPHON_RETURN_IF_ERROR(Connect(StageId(stage), MicrobatchId(microbatch), flow));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Connect(StageId stage, MicrobatchId microbatch, Flow flow) {
    const StageId source = Target(stage, flow == kForwardFlow ? kBackwardFlow : kForwardFlow);
    const Cell& cell = At(stage, microbatch);
    if (!Exists(source)) return absl::OkStatus();
    const int message = cell.message[flow];
    if (message != kNone && lowered_) {
      if (cell.posted[flow] == kNone) return NoReceive(source, stage, microbatch, flow);
      result_.graph.AddDependency(TaskId(message), TaskId(cell.posted[flow]));
    }
    if (cell.first[flow] == kNone) return absl::OkStatus();
    const int provider = message != kNone                      ? message
                         : WorkerOf(source) == WorkerOf(stage) ? At(source, microbatch).last[flow]
                                                               : kNone;
    if (provider == kNone) return NothingComes(source, stage, microbatch, flow);
    Wait(cell.first[flow], provider);
    return lowered_ && message != kNone ? CheckReceiveOrder(stage, microbatch, flow)
                                        : absl::OkStatus();
  }

  Action UserOf(StageId stage, MicrobatchId microbatch, Flow flow) const {
    if (flow == kForwardFlow) return {stage, ActionKind::kForward, microbatch};
    const Action whole{stage, ActionKind::kBackward, microbatch};
    return index_.Has(whole) ? whole : Action{stage, ActionKind::kBackwardInput, microbatch};
  }

  absl::Status CheckReceiveOrder(StageId stage, MicrobatchId microbatch, Flow flow) const {
    const Action user = UserOf(stage, microbatch, flow);
    const Action receive{stage, ReceiveKind(flow), microbatch};
    if (index_.Find(receive) < index_.Find(user)) return absl::OkStatus();
    return Bad({WorkerOf(stage), index_.Find(user)},
               absl::StrCat("worker ", WorkerOf(stage), " has ", ToString(user), " before ",
                            ToString(receive), ", which brings what it needs"));
  }

  absl::Status NoReceive(StageId source, StageId stage, MicrobatchId microbatch, Flow flow) const {
    const Action send{source, SendKind(flow), microbatch};
    return Bad({WorkerOf(source), index_.Find(send)},
               absl::StrCat("worker ", WorkerOf(source), " has ", ToString(send), ", but worker ",
                            WorkerOf(stage), " has no ",
                            ToString(Action{stage, ReceiveKind(flow), microbatch})));
  }

  absl::Status NothingComes(StageId source, StageId stage, MicrobatchId microbatch,
                            Flow flow) const {
    const Action user = UserOf(stage, microbatch, flow);
    const bool computed = flow == kForwardFlow
                              ? index_.Has({source, ActionKind::kForward, microbatch})
                              : index_.Has({source, ActionKind::kBackward, microbatch}) ||
                                    index_.Has({source, ActionKind::kBackwardInput, microbatch});
    const std::string missing = computed ? ToString(Action{source, SendKind(flow), microbatch})
                                         : ToString(UserOf(source, microbatch, flow));
    return Bad({WorkerOf(stage), index_.Find(user)},
               absl::StrCat("worker ", WorkerOf(stage), " has ", ToString(user), ", but worker ",
                            WorkerOf(source), " has no ", missing));
  }

  const SimulationInput& input_;
  const Schedule& schedule_;
  const ScheduleIndex& index_;
  const bool lowered_;
  std::vector<std::vector<LayerCost>> pieces_;  // [stage]
  StepGraph result_;
  StepResources resources_;
  std::vector<Cell> cells_;     // [replica, stage, microbatch]
  std::vector<int> exchanges_;  // [stage]: where the replicas' gradients meet
  int reduction_ = kNone;       // tasks at which all workers meet
  int norm_ = kNone;
  // Of the program that is being walked:
  int replica_ = 0;
  int worker_ = 0;
  int place_ = 0;
  int last_ = kNone;  // the newest task of its lane
  int last_reduction_ = kNone;
  std::vector<VersionBook> versions_;  // [stage]
};

}  // namespace

absl::StatusOr<StepGraph> BuildStepGraph(const SimulationInput& input, const ScheduleIndex& index) {
  return StepGraphBuilder(input, index).Build();
}

}  // namespace siphon
