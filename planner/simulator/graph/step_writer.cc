#include "planner/simulator/graph/step_writer.h"

#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "planner/marked_grid.h"

namespace siphon {

Nanos TimeOfCore(Bytes bytes, BytesPerSecond rate) {
  if (rate.value == 0) return Nanos(0);
  const absl::uint128 units = absl::uint128(bytes.value) * 1'000'000'000 + (rate.value - 1);
  return Nanos(static_cast<int64_t>(absl::Uint128Low64(units / rate.value)));
}

StepWriter::StepWriter(const SimulationInput& input, StepGraph graph)
    : input_(input),
      graph_(std::move(graph)),
      resources_(input.topology, input.transport, input.device_of_worker, graph_.graph) {
  graph_.workers = input.schedule.replicas * WorkerCount(input.schedule);
  graph_.graph.ShareCores(input.cores);
}

int StepWriter::Account(int worker) const {
  return replica_ * WorkerCount(input_.schedule) + worker;
}

void StepWriter::BeginProgram(int replica, int worker) {
  replica_ = replica;
  worker_ = worker;
  account_ = Account(worker);
  place_ = kNone;
  graph_.graph.BeginPart();
  AddOnLane(TaskRole::kMarker, Nanos(0));  // what comes before the first action waits for it
}

void StepWriter::EndPrograms() { graph_.graph.BeginPart(); }

StepGraph StepWriter::Take() {
  graph_.lane_names = resources_.lane_names();
  return std::move(graph_);
}

int StepWriter::AddOnLane(TaskRole role, Nanos duration) {
  const LaneId lane = resources_.ComputeLane(account());
  TaskGraph& graph = graph_.graph;
  last_ =
      (role == TaskRole::kCompute ? graph.AddWork(lane, duration) : graph.AddTask(lane, duration))
          .value;
  graph_.origins.push_back({.role = role, .worker = account(), .place = place_});
  return last_;
}

int StepWriter::host() const {
  return workers() + ServerOf(input_.topology, input_.device_of_worker[account()]);
}

int StepWriter::AddHostStep(Nanos duration) {
  const TaskId task = graph_.graph.AddTask(resources_.HostSteps(account()), duration);
  graph_.origins.push_back({.role = TaskRole::kHostStep, .worker = account(), .place = place_});
  return task.value;
}

int StepWriter::AddRecompute(GroupId group, Nanos duration) {
  const int task = AddOnLane(TaskRole::kCompute, duration);
  graph_.origins.back().recomputes = group;
  return task;
}

int StepWriter::AddCopy(TaskRole role, const Route& route, Bytes bytes) {
  const Nanos core_work =
      role == TaskRole::kSwap ? TimeOfCore(bytes, input_.transport.swap_rate) : Nanos(0);
  const TaskId task = graph_.graph.AddCopy(route.lane, bytes, route.latency, route.path, core_work);
  graph_.origins.push_back({.role = role, .worker = account(), .place = place_});
  AddDependency(task.value, last_);
  return task.value;
}

int StepWriter::AddMeeting(Nanos duration) {
  const TaskId task = graph_.graph.AddTask(std::nullopt, duration);
  graph_.origins.push_back({.role = TaskRole::kExchange});
  return task.value;
}

void StepWriter::AddDependency(int task, int before) {
  graph_.graph.AddDependency(TaskId(task), TaskId(before));
}

void StepWriter::Wait(int task, int provider) {
  AddDependency(task, provider);
  graph_.origins[task].provider = provider;
}

void StepWriter::Change(int task, TaskMoment moment, MemoryKind kind, Bytes bytes) {
  ChangeAt(account(), task, moment, kind, bytes);
}

void StepWriter::ChangeAt(int account, int task, TaskMoment moment, MemoryKind kind, Bytes bytes) {
  if (bytes == Bytes(0)) return;
  graph_.changes.push_back({.task = task,
                            .moment = moment,
                            .kind = kind,
                            .account = account,
                            .worker = account_,
                            .place = place_,
                            .bytes = bytes});
}

void StepWriter::Hold(int first, int last, MemoryKind kind, Bytes bytes) {
  Change(first, TaskMoment::kBegin, kind, bytes);
  Change(last, TaskMoment::kEnd, kind, bytes * -1);
}

absl::Status StepWriter::Refuse(absl::string_view complaint) const {
  return ScheduleError(input_.schedule, {worker_, place_},
                       absl::StrCat("worker ", worker_, " has ", ToString(action()), complaint));
}

}  // namespace siphon
