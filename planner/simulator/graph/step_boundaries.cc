#include "planner/simulator/graph/step_boundaries.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "planner/marked_grid.h"
#include "planner/simulator/graph/messages_held.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr BoundaryFlow kFlows[] = {BoundaryFlow::kForward, BoundaryFlow::kBackward};

ActionKind SendKind(BoundaryFlow flow) {
  return flow == BoundaryFlow::kForward ? ActionKind::kSendForward : ActionKind::kSendBackward;
}
ActionKind ReceiveKind(BoundaryFlow flow) {
  return flow == BoundaryFlow::kForward ? ActionKind::kReceiveForward
                                        : ActionKind::kReceiveBackward;
}

// The stage to which a tensor made at `stage` goes, and the one from which its input comes.
StageId Target(StageId stage, BoundaryFlow flow) {
  return StageId(flow == BoundaryFlow::kForward ? stage.value + 1 : stage.value - 1);
}
StageId Source(StageId stage, BoundaryFlow flow) {
  return StageId(flow == BoundaryFlow::kForward ? stage.value - 1 : stage.value + 1);
}

bool IsLowered(const Schedule& schedule) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [](const auto& program) {
    return std::any_of(program.begin(), program.end(),
                       [](const Action& action) { return IsCommunication(action.kind); });
  });
}

}  // namespace

StepBoundaries::StepBoundaries(const ScheduleIndex& index, StepWriter& writer)
    : schedule_(writer.input().schedule),
      index_(index),
      writer_(writer),
      lowered_(IsLowered(schedule_)),
      crossings_(2 * static_cast<size_t>(schedule_.replicas) * StageCount(schedule_) *
                 schedule_.microbatches) {
  const TransportCosts& transport = writer.input().transport;
  if (transport.sent == SentMemory::kUntilTaken) {
    freed_behind_ = MessagesHeld(schedule_, index, transport.room);
  }
}

size_t StepBoundaries::IndexOf(int replica, StageId stage, MicrobatchId microbatch,
                               BoundaryFlow flow) const {
  const size_t row = static_cast<size_t>(replica) * StageCount(schedule_) + stage.value;
  const size_t cell = row * schedule_.microbatches + microbatch.value;
  return 2 * cell + (flow == BoundaryFlow::kForward ? 0 : 1);
}

StepBoundaries::Crossing& StepBoundaries::At(int replica, StageId stage, MicrobatchId microbatch,
                                             BoundaryFlow flow) {
  return crossings_[IndexOf(replica, stage, microbatch, flow)];
}

Nanos StepBoundaries::CopyTime(Bytes bytes) const {
  return TimeOfCore(bytes, writer_.input().transport.copy_rate);
}

int StepBoundaries::CopyIn(BoundaryFlow flow) {
  const StageId stage = writer_.action().stage;
  if (!Exists(Source(stage, flow))) return kNone;
  const Nanos time = CopyTime(Incoming(stage, flow));
  return time > Nanos(0) ? writer_.AddOnLane(TaskRole::kCompute, time) : kNone;
}

bool StepBoundaries::Exists(StageId stage) const {
  return stage.value >= 0 && stage.value < StageCount(schedule_);
}

Bytes StepBoundaries::Incoming(StageId stage, BoundaryFlow flow) const {
  const StageCost& cost = writer_.CostOf(stage);
  return flow == BoundaryFlow::kForward ? cost.input : cost.output;
}

Bytes StepBoundaries::Outgoing(StageId stage, BoundaryFlow flow) const {
  const StageCost& cost = writer_.CostOf(stage);
  return flow == BoundaryFlow::kForward ? cost.output : cost.input;
}

absl::Status StepBoundaries::PassOn(BoundaryFlow flow, int first, int last) {
  const StageId stage = writer_.action().stage;
  const MicrobatchId microbatch = writer_.action().microbatch;
  Crossing& crossing = At(writer_.replica(), stage, microbatch, flow);
  crossing.user = first;
  crossing.maker = last;
  Book(flow, first, last);
  const StageId target = Target(stage, flow);
  if (!Exists(target)) return absl::OkStatus();
  return lowered_ || WorkerOf(target) == writer_.worker() ? absl::OkStatus() : Send(flow);
}

void StepBoundaries::Book(BoundaryFlow flow, int first, int last) {
  const StageId stage = writer_.action().stage;
  const StageId source = Source(stage, flow);
  if (Exists(source)) {
    writer_.Change(last, TaskMoment::kEnd, MemoryKind::kBoundary, Incoming(stage, flow) * -1);
    if (HeldUntilTaken() && WorkerOf(source) == writer_.worker()) {  // a copy, for a moment
      writer_.Hold(first, first, MemoryKind::kBoundary, Incoming(stage, flow));
    }
  }
  if (!Exists(Target(stage, flow))) return;
  writer_.Change(HeldUntilTaken() ? first : last, TaskMoment::kBegin, MemoryKind::kBoundary,
                 Outgoing(stage, flow));
}

void StepBoundaries::EndAction() {
  const auto program_end = static_cast<int>(schedule_.programs[writer_.worker()].size()) - 1;
  const bool is_last = writer_.place() == program_end;
  while (!freed_.empty() && (is_last || freed_.begin()->first <= writer_.place())) {
    writer_.Change(writer_.last(), TaskMoment::kEnd, MemoryKind::kBoundary,
                   freed_.begin()->second * -1);
    freed_.erase(freed_.begin());
  }
}

absl::Status StepBoundaries::Send(BoundaryFlow flow) {
  const StageId stage = writer_.action().stage;
  const MicrobatchId microbatch = writer_.action().microbatch;
  const StageId target = Target(stage, flow);
  if (!Exists(target) || WorkerOf(target) == writer_.worker()) {
    return writer_.Refuse(
        absl::StrCat(", but there is no stage ", target.value, " on another worker"));
  }
  const int maker = At(writer_.replica(), stage, microbatch, flow).maker;
  if (maker == kNone) return writer_.Refuse(" before what it sends is computed");
  const int receiver = writer_.Account(WorkerOf(target));
  SIPHON_ASSIGN_OR_RETURN(
      const Route route,
      writer_.resources().Message(
          writer_.account(), receiver,
          flow == BoundaryFlow::kForward ? MessageChannel::kForward : MessageChannel::kBackward));
  const Bytes bytes = Outgoing(stage, flow);
  if (const Nanos time = CopyTime(bytes); time > Nanos(0)) {
    writer_.AddOnLane(TaskRole::kCompute, time);
  }
  const int message = writer_.AddCopy(TaskRole::kMessage, route, bytes);
  writer_.Wait(message, maker);
  if (HeldUntilTaken()) {
    freed_[freed_behind_[writer_.worker()][writer_.place()]] += bytes;
  } else {
    writer_.Change(message, TaskMoment::kEnd, MemoryKind::kBoundary, bytes * -1);
  }
  if (!lowered_) {
    writer_.ChangeAt(receiver, message, TaskMoment::kBegin, MemoryKind::kBoundary, bytes);
  }
  const size_t index = IndexOf(writer_.replica(), target, microbatch, flow);
  std::vector<size_t>& sent = sent_[route.lane];
  sent.push_back(index);
  const auto room = static_cast<size_t>(writer_.input().transport.room);
  crossings_[index].message = message;
  if (sent.size() > room)
    crossings_[index].waits_for = static_cast<int>(sent[sent.size() - 1 - room]);
  return absl::OkStatus();
}

void StepBoundaries::Receive(BoundaryFlow flow) {
  const StageId stage = writer_.action().stage;
  const MicrobatchId microbatch = writer_.action().microbatch;
  At(writer_.replica(), stage, microbatch, flow).posted = writer_.last();
  writer_.Change(writer_.last(), TaskMoment::kEnd, MemoryKind::kBoundary, Incoming(stage, flow));
}

absl::Status StepBoundaries::Connect() {
  for (int replica = 0; replica < schedule_.replicas; ++replica) {
    for (int stage = 0; stage < StageCount(schedule_); ++stage) {
      for (int microbatch = 0; microbatch < schedule_.microbatches; ++microbatch) {
        for (const BoundaryFlow flow : kFlows) {
          SIPHON_RETURN_IF_ERROR(Connect(replica, StageId(stage), MicrobatchId(microbatch), flow));
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status StepBoundaries::Connect(int replica, StageId stage, MicrobatchId microbatch,
                                     BoundaryFlow flow) {
  const StageId source = Source(stage, flow);
  if (!Exists(source)) return absl::OkStatus();
  const Crossing& crossing = At(replica, stage, microbatch, flow);
  const bool has_message = crossing.message != kNone;
  if (has_message && lowered_) {
    if (crossing.posted == kNone) {
      return Missing({source, SendKind(flow), microbatch}, stage,
                     {stage, ReceiveKind(flow), microbatch});
    }
    if (crossing.waits_for != kNone) {
      const Crossing& before = crossings_[crossing.waits_for];
      if (before.posted != kNone) writer_.AddDependency(crossing.message, before.posted);
    }
  }
  if (crossing.user == kNone) return absl::OkStatus();
  int provider = crossing.message;
  if (!has_message && WorkerOf(source) == WorkerOf(stage)) {
    provider = At(replica, source, microbatch, flow).maker;
  }
  if (provider == kNone) return NothingComes(stage, microbatch, flow);
  writer_.Wait(crossing.user, provider);
  return has_message && lowered_ ? CheckReceiveOrder(stage, microbatch, flow) : absl::OkStatus();
}

Action StepBoundaries::UserOf(StageId stage, MicrobatchId microbatch, BoundaryFlow flow) const {
  if (flow == BoundaryFlow::kForward) return {stage, ActionKind::kForward, microbatch};
  const Action whole{stage, ActionKind::kBackward, microbatch};
  return index_.Has(whole) ? whole : Action{stage, ActionKind::kBackwardInput, microbatch};
}

absl::Status StepBoundaries::Missing(const Action& action, StageId holder_stage,
                                     const Action& missing) const {
  const int worker = WorkerOf(action.stage);
  return ScheduleError(schedule_, {worker, index_.Find(action)},
                       absl::StrCat("worker ", worker, " has ", ToString(action), ", but worker ",
                                    WorkerOf(holder_stage), " has no ", ToString(missing)));
}

absl::Status StepBoundaries::NothingComes(StageId stage, MicrobatchId microbatch,
                                          BoundaryFlow flow) const {
  const StageId source = Source(stage, flow);
  const Action maker = UserOf(source, microbatch, flow);  // what makes is what uses, a stage on
  const Action missing = index_.Has(maker) ? Action{source, SendKind(flow), microbatch} : maker;
  return Missing(UserOf(stage, microbatch, flow), source, missing);
}

absl::Status StepBoundaries::CheckReceiveOrder(StageId stage, MicrobatchId microbatch,
                                               BoundaryFlow flow) const {
  const Action user = UserOf(stage, microbatch, flow);
  const Action receive{stage, ReceiveKind(flow), microbatch};
  if (index_.Find(receive) < index_.Find(user)) return absl::OkStatus();
  return ScheduleError(schedule_, {WorkerOf(stage), index_.Find(user)},
                       absl::StrCat("worker ", WorkerOf(stage), " has ", ToString(user), " before ",
                                    ToString(receive), ", which brings what it needs"));
}

}  // namespace siphon
