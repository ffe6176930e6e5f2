// Whole jobs' messages over NCCL, as planned: each worker a thread with a device of its own.

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "launch/plan_job/plan_job.h"
#include "launch/plan_job/plan_rings.h"
#include "pipeline/schedules/build_schedule.h"
#include "pipeline/transport/all_gather.h"
#include "planner/action.h"
#include "tests/pipeline/transport/nccl_threads.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/support/fake_nccl/fake_nccl_control.h"

namespace siphon {
namespace {

absl::StatusOr<TrainingPlan> PlanOf(const std::string& schedule, int64_t stages) {
  const ModelSpec model = BuildModelSpec({.kind = "gpt",
                                          .layers = 6,
                                          .hidden = 16,
                                          .heads = 2,
                                          .vocabulary = 32,
                                          .sequence_length = 8,
                                          .tie_embeddings = true})
                              .value();
  JobConfig job;
  job.pipeline.stages = stages;
  job.pipeline.schedule = schedule;
  job.train.global_batch = 32;
  job.train.microbatch = 4;
  return PlanJob(job, model, 0);
}

bool IsSend(ActionKind kind) {
  return kind == ActionKind::kSendForward || kind == ActionKind::kSendBackward;
}
bool IsReceive(ActionKind kind) {
  return kind == ActionKind::kReceiveForward || kind == ActionKind::kReceiveBackward;
}

// A worker's communication as its program has it: messages in that order, and no wait but before
// what computes with them.
class Messenger {
 public:
  Messenger(const TrainingPlan& plan, WorkerId me, Transport& transport, DeviceMemory& memory)
      : plan_(plan), me_(me), transport_(transport), memory_(memory) {}

  void Run() {
    for (const Action& action : plan_.training.programs[me_.value]) {
      if (IsSend(action.kind)) Send(action);
      if (IsReceive(action.kind)) Receive(action);
      if (!IsSend(action.kind) && !IsReceive(action.kind)) Await(receives_);
    }
    Await(sends_);
    const std::vector<int64_t> sizes(static_cast<size_t>(WorkerCount(plan_.training)), 0);
    EXPECT_TRUE(AllGather(transport_, me_, sizes, {}).ok());
  }

  int received() const { return received_; }

 private:
  static constexpr size_t kBytes = 2048;

  bool IsForward(const Action& action) const {
    return action.kind == ActionKind::kSendForward || action.kind == ActionKind::kReceiveForward;
  }
  // The stage at the other end.
  StageId Other(const Action& action) const {
    const bool next =
        action.kind == ActionKind::kSendForward || action.kind == ActionKind::kReceiveBackward;
    return StageId(action.stage.value + (next ? 1 : -1));
  }
  WorkerId Peer(const Action& action) const {
    return plan_.training.worker_of_stage[Other(action).value];
  }
  Lane LaneOf(const Action& action) const {
    return IsForward(action) ? Lane::kForward : Lane::kBackward;
  }
  // Says which message it is.
  std::byte Mark(StageId sender, const Action& action) const {
    return static_cast<std::byte>(1 + sender.value * 16 + action.microbatch.value);
  }

  void Send(const Action& action) {
    const std::vector<std::byte> bytes(kBytes, Mark(action.stage, action));
    const absl::Span<std::byte> sent = memory_.Take(kBytes);
    memory_.Copy(sent.data(), bytes.data(), kBytes);
    const auto send = transport_.StartSend({me_, Peer(action), LaneOf(action)}, {sent});
    ASSERT_TRUE(send.ok()) << send.status();
    sends_.push_back({*send, {}, {}});
  }
  void Receive(const Action& action) {
    const absl::Span<std::byte> room = memory_.Take(kBytes);
    const auto receive = transport_.StartReceive({Peer(action), me_, LaneOf(action)}, {room});
    ASSERT_TRUE(receive.ok()) << receive.status();
    receives_.push_back({*receive, room, Mark(Other(action), action)});
  }
  struct Started {
    TransferId transfer;
    absl::Span<std::byte> room;
    std::byte mark;
  };
  void Await(std::vector<Started>& started) {
    for (const auto& [transfer, room, mark] : started) {
      const absl::Status status = transport_.Wait(transfer);
      ASSERT_TRUE(status.ok()) << status;
      if (room.empty()) continue;
      std::vector<std::byte> bytes(room.size());
      memory_.Copy(bytes.data(), room.data(), room.size());
      EXPECT_EQ(bytes, std::vector<std::byte>(kBytes, mark));
      ++received_;
    }
    started.clear();
  }

  const TrainingPlan& plan_;
  const WorkerId me_;
  Transport& transport_;
  DeviceMemory& memory_;
  std::vector<Started> sends_, receives_;
  int received_ = 0;
};

// On three workers with one stage each, or two.
absl::StatusOr<TrainingPlan> PlanOnThree(const std::string& schedule) {
  absl::StatusOr<TrainingPlan> plan = PlanOf(schedule, 3);
  if (!plan.ok() || WorkerCount(plan->training) != 3) plan = PlanOf(schedule, 6);
  return plan;
}

struct Device {
  std::string schedule;
  int64_t one_queue = 0;
};

void PrintTo(const Device& device, std::ostream* out) { *out << device.schedule; }

// For all schedules that can be planned so.
std::vector<Device> DevicesOfSchedules() {
  std::vector<Device> devices;
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    const absl::StatusOr<TrainingPlan> plan = PlanOnThree(entry.name);
    if (!plan.ok() || WorkerCount(plan->training) != 3) continue;
    devices.push_back({entry.name, 0});
    devices.push_back({entry.name, 1});
  }
  return devices;
}

class PlannedNccl : public testing::TestWithParam<Device> {};

// A send ends only with its receive there, and nothing is buffered: programs that the validator has
// let pass need no more. That is so even where all streams of a device share one queue, since
// messages are launched in the order that was validated.
TEST_P(PlannedNccl, CarriesEveryMessageOfAStep) {
  const absl::StatusOr<TrainingPlan> plan = PlanOnThree(GetParam().schedule);
  ASSERT_TRUE(plan.ok()) << plan.status();
  FakeCuda::Reset();
  FakeNccl::Reset();
  FakeNccl::Set("one_queue", GetParam().one_queue);
  {
    NcclThreads job = MakeNcclThreads(MakeRingJob(3, LayOutRings(PlanHostRings(*plan)), nullptr),
                                      nullptr, [&](NcclTransportOptions& options) {
                                        options.channels = PlanNccl(*plan, options.me).channels;
                                        options.message_patience = Nanos(5'000'000'000);
                                      });
    ASSERT_TRUE(job.ok()) << job.made[0].status();
    std::vector<int> received(3);
    std::vector<std::thread> threads;
    for (size_t worker = 0; worker < 3; ++worker) {
      threads.emplace_back([&, worker] {
        const WorkerId me(static_cast<int>(worker));
        Messenger messenger(*plan, me, job.transport(me.value), *job.memory[worker]);
        messenger.Run();
        received[worker] = messenger.received();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const int count : received) EXPECT_GE(count, 8);  // one each microbatch, at least
  }
  EXPECT_EQ(FakeNccl::Get("communicators"), 0);
}

INSTANTIATE_TEST_SUITE_P(Schedules, PlannedNccl, testing::ValuesIn(DevicesOfSchedules()),
                         [](const auto& info) {
                           return info.param.schedule +
                                  (info.param.one_queue == 1 ? "InOneQueue" : "");
                         });

}  // namespace
}  // namespace siphon
