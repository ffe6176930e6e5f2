// What the CPU's workers make of a job, workers on devices make of it, bit for bit
// (device_workers.h).

#include "tests/launch/run/device_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/output/text_file.h"
#include "launch/process/machine_memory.h"
#include "launch/profile/profile_file.h"
#include "launch/run/generate.h"
#include "launch/run/job/fit_memory.h"
#include "launch/run/job/name_of_place.h"
#include "launch/run/layer_profile/profile_layers.h"
#include "launch/run/parking/device_lending.h"
#include "launch/run/parking/host_memory.h"
#include "launch/run/parking/locked_memory.h"
#include "launch/run/parking/parking_room.h"
#include "launch/run/trainer.h"
#include "pipeline/transport/in_process_transport.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/device_job.h"
#include "tests/support/fake_cuda/fake_control.h"

namespace siphon {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr Bytes kMessages(3 << 20);  // what NCCL is said to take

// Links of 10 MB/s, as the fake has them where it is told so.
constexpr char kSlowServer[] = R"(name: slow links
device: V100
devices: 4
device_memory: 16GiB
copy_engines: one_per_peer
wires:
  - [0, 1, 1, 1]
  - [1, 0, 1, 1]
  - [1, 1, 0, 1]
  - [1, 1, 1, 0]
wire_rate: 10MB/s
latency: 100us
device_egress: 30MB/s
device_ingress: 30MB/s
switches:
  - devices: [0, 1, 2, 3]
    to_host: 10MB/s
    from_host: 10MB/s
    latency: 100us
)";

TEST_F(DeviceWorkers, HaveTheCpusBitsWithEveryStrategy) {
  const Bits expected = OnCpu();
  ASSERT_FALSE(expected.empty());
  const int64_t kept_free = FakeCuda::Get("allocations");
  for (const char* strategy : {"keep", "recompute", "host_swap", "d2d_swap", "mpress",
                               "optimizer_offload", "weight_offload", "nvme_swap", "auto"}) {
    SCOPED_TRACE(strategy);
    const bool keeps = std::string(strategy) == "keep";
    const auto prepared = PrepareJob(DeviceJob(strategy, keeps ? 100 : 93), {});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    EXPECT_NE(prepared->kept_whole.has_value(), keeps) << "it would fit anyway";
    FakeCuda::Reset();
    const Run run = Train(*prepared);
    EXPECT_TRUE(run.bits == expected) << "bits differ";
    const bool copies =
        ParksAnything(prepared->parking) || std::string(strategy) == "optimizer_offload";
    EXPECT_EQ(FakeCuda::Get("copies") > 0, copies);
    EXPECT_EQ(FakeCuda::Get("freed_while_opened"), 0);
    EXPECT_EQ(FakeCuda::Get("allocations"), kept_free) << "something of the devices is left";
  }
}

// Wherever that is asked for, with devices or without.
TEST_F(DeviceWorkers, WriteCheckpointsThatContinueAText) {
  JobConfig job = PlainJob("cuda");
  job.data.kind = "text";
  job.data.path = folder_ + "/text.txt";
  job.model.vocabulary = 0;
  std::string read;
  for (int line = 0; line < 200; ++line) absl::StrAppend(&read, line, " lines of a text\n");
  std::filesystem::create_directories(folder_);
  ASSERT_EQ(WriteTextFile(job.data.path, read), absl::OkStatus());
  const auto prepared = PrepareJob(job, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const Run run = Train(*prepared);
  std::string text;
  const absl::Status continued =
      Generate({.checkpoint = run.seats.ends[0]->last_checkpoint, .prompt = "ab", .length = 4},
               [&](absl::string_view more) { absl::StrAppend(&text, more); });
  EXPECT_EQ(continued, absl::OkStatus());
  EXPECT_FALSE(text.empty());
}

// A device that no worker computes on: the owner takes its memory itself.
TEST_F(DeviceWorkers, TakeMemoryOfDevicesWithoutAWorkerThemselves) {
  const auto transports = MakeInProcessTransports(1, [] { return absl::OkStatus(); });
  Coordinator coordinator(transports[0].get(), WorkerId(0), 1);
  OtherTorchDevice torch;
  const WorkerDevice device{&torch, &TheCudaModule(), [](DeviceId id) { return id.value - 4; }};
  DeviceLending lending(device, WorkerId(0), {DeviceId(0)}, coordinator);
  std::vector<WorkerParking> parking(1);
  parking[0].bytes[{Placement::kPeerSwap, DeviceId(5)}] = Bytes(5000);
  const int64_t kept_free = FakeCuda::Get("allocations");
  EXPECT_EQ(lending.LentHere(parking), Bytes(0));
  EXPECT_EQ(lending.Lend(parking), absl::OkStatus());
  EXPECT_EQ(lending.Open(parking), absl::OkStatus());
  EXPECT_EQ(lending.PartAt(DeviceId(5)).size(), 5000u);
  EXPECT_TRUE(lending.PartAt(DeviceId(0)).empty());
  EXPECT_EQ(FakeCuda::Get("allocations"), kept_free + 1);
  EXPECT_TRUE(lending.out_of_reach().empty());
  EXPECT_EQ(lending.Close(), absl::OkStatus());
  EXPECT_EQ(FakeCuda::Get("allocations"), kept_free);

  // Others may have taken it.
  FakeCuda::Set("memory", 1 << 10);
  EXPECT_EQ(lending.Open(parking), absl::OkStatus());
  FakeCuda::Reset();
  EXPECT_TRUE(lending.PartAt(DeviceId(5)).empty());
  ASSERT_TRUE(lending.out_of_reach().contains(DeviceId(5)));
  EXPECT_THAT(lending.out_of_reach().at(DeviceId(5)),
              HasSubstr("taking 2097152 bytes of device 1"));
  EXPECT_EQ(lending.Close(), absl::OkStatus());
  EXPECT_EQ(FakeCuda::Get("allocations"), kept_free);
}

// However large the machine is, and whatever the job says.
TEST_F(DeviceWorkers, LockNoMoreOfTheHostThanItCanSpare) {
  MemoryLedger books(Bytes(0));
  const auto locked = [&](Bytes bytes, MemoryLedger* on) {
    return HostMapping::Make(bytes, on, kParked, nullptr, &TheCudaModule()).status();
  };
  EXPECT_EQ(locked(Bytes(5000), &books), absl::OkStatus());
  EXPECT_EQ(locked(Bytes(5000), nullptr), absl::OkStatus());
  const absl::Status refused = locked(LockedAtMost(MachineMemory()) + Bytes(1), &books);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("bytes of locked host memory wanted, a"));
  EXPECT_EQ(books.used(), Bytes(0));
}

// As a run that moves to a plan with more on the host.
TEST_F(DeviceWorkers, GrowWhatTheyHaveLockedWithWhatIsThere) {
  MemoryLedger books(Bytes(1 << 20));
  auto parked = HostMapping::Make(Bytes(5000), &books, kParked, nullptr, &TheCudaModule());
  ASSERT_TRUE(parked.ok()) << parked.status();
  parked->bytes()[4999] = std::byte{9};
  ASSERT_EQ(parked->Grow(Bytes(50'000)), absl::OkStatus());
  ASSERT_EQ(parked->bytes().size(), 50'000u);
  EXPECT_EQ(parked->bytes()[4999], std::byte{9});
  EXPECT_EQ(parked->bytes()[49'999], std::byte{0});
  EXPECT_EQ(books.used(), Bytes(50'000));
  EXPECT_TRUE(absl::IsResourceExhausted(parked->Grow(Bytes((1 << 20) + 1))));
  EXPECT_EQ(parked->bytes().size(), 50'000u);
}

// What else would fit takes to know the devices' speed, that it does not fit does not.
TEST_F(DeviceWorkers, AreRefusedForTheirMemoryThoughNothingSaysWhichDevices) {
  JobConfig job = DeviceJob("keep", 50);
  job.topology.name = "";
  const absl::Status refused = PrepareJob(job, {}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("does not fit"), HasSubstr("other strategies were not tried: "),
                    HasSubstr("pipeline.backend: cuda, but nothing says which devices; write "
                              "topology.source: probe")));
  job.memory.strategy = "host_swap";
  EXPECT_TRUE(absl::IsInvalidArgument(PrepareJob(job, {}).status()));
}

// Interleaved stages hand each other tensors within a worker, and tied embeddings gradients.
TEST_F(DeviceWorkers, HandTensorsOnWithinAWorker) {
  JobConfig cpu = PlainJob("cpu");
  cpu.pipeline.schedule = "zbv";
  cpu.model.tie_embeddings = true;
  JobConfig cuda = cpu;
  cuda.pipeline.backend = "cuda";
  cuda.topology.name = "v100x4_nv2";
  cuda.output.directory += "-device";
  const auto expected = Trainer(cpu).Train();
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto prepared = PrepareJob(cuda, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_TRUE(Train(*prepared).bits == CheckpointBits(expected->last_checkpoint));
}

TEST_F(DeviceWorkers, ContinueFromACheckpoint) {
  const Bits expected = OnCpu();
  for (const char* strategy : {"keep", "weight_offload"}) {
    SCOPED_TRACE(strategy);
    JobConfig job = DeviceJob(strategy, 100);
    job.output.directory += strategy;
    job.train.steps = 2;
    const auto first = PrepareJob(job, {});
    ASSERT_TRUE(first.ok()) << first.status();
    Train(*first);
    job.train.steps = 4;
    job.checkpoint.resume = "auto";
    const auto second = PrepareJob(job, {});
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_TRUE(Train(*second).bits == expected);
  }
}

// What NCCL has and what is lent is not LibTorch's.
TEST_F(DeviceWorkers, LimitLibTorchToWhatIsLeftOfTheCapacity) {
  const auto prepared = PrepareJob(DeviceJob("d2d_swap", 93), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const Run run = Train(*prepared, [](WorkerSeat& seat) { seat.communication_bytes = kMessages; });
  int lenders = 0;
  for (int worker = 0; worker < 4; ++worker) {
    const bool lends = LentByWorker(*prepared, WorkerId(worker)) > Bytes(0);
    lenders += lends ? 1 : 0;
    EXPECT_EQ(run.limits[static_cast<size_t>(worker)],
              prepared->job.memory.capacity[0] - kMessages - (lends ? kCudaArenaBlock : Bytes(0)))
        << "whole blocks are lent";
  }
  EXPECT_GT(lenders, 0);
}

// A device that has no room for its arena: its groups go their second way, before the first step.
TEST_F(DeviceWorkers, TakeSecondChoicesWhereADeviceDoesNotLend) {
  const auto prepared = PrepareJob(DeviceJob("d2d_swap", 93), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  FakeCuda::Set("memory", 1 << 20);
  const Run run = Train(*prepared);
  FakeCuda::Reset();
  EXPECT_THAT(run.seats.said, HasSubstr("does not lend its memory: "));
  EXPECT_TRUE(run.bits == OnCpu());
}

// Between two steps. What is away moves out of the arena, which is the lender's own again then.
TEST_F(DeviceWorkers, TakeSecondChoicesWhereALenderTakesItsMemoryBack) {
  const auto prepared = PrepareJob(DeviceJob("d2d_swap", 93), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const int lender = FirstLent(*prepared).place.lender.value;
  Bytes before, after;  // what LibTorch may have there
  const SeatedRun seats = RunOn(*prepared, [&](WorkerSeat& seat, OtherTorchDevice& torch) {
    if (seat.me.value != lender) return;
    const auto asked = std::make_shared<int>(0);
    seat.at_phase = [&, asked](const std::string& phase) -> absl::Status {
      if (phase != kLendingPhase || ++*asked < 3) return absl::OkStatus();
      before = torch.limit();
      return absl::ResourceExhaustedError("the test says no");
    };
    seat.at_progress = [&](int64_t, const std::string&) { after = torch.limit(); };
  });
  Run run{.seats = seats};
  for (const auto& end : seats.ends) ASSERT_TRUE(end.ok()) << end.status();
  run.bits = CheckpointBits(seats.ends[0]->last_checkpoint);
  EXPECT_EQ(after - before, kCudaArenaBlock);
  EXPECT_THAT(run.seats.said, ContainsRegex("does not lend its memory: [0-9]+ groups? "
                                            "go(es)? to the host from step 3 on"));
  EXPECT_TRUE(run.bits == OnCpu());
  EXPECT_EQ(FakeCuda::Get("freed_while_opened"), 0);
}

// Training state, which nobody computes again: arenas have room for it from the begin.
TEST_F(DeviceWorkers, LeaveAHostThatRefusesForOtherDevices) {
  JobConfig job = PlainJob("cuda");
  job.model.hidden = 96;
  JobConfig cpu = PlainJob("cpu");
  cpu.model.hidden = 96;
  const auto expected = Trainer(cpu).Train();
  ASSERT_TRUE(expected.ok()) << expected.status();
  job.memory.strategy = "weight_offload";
  job.memory.capacity.assign(4, Bytes(1 << 30));
  job.memory.capacity[0] = Needs(job, 85)[0];
  const auto prepared = PrepareJob(job, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  ASSERT_FALSE(prepared->second.stripes.empty());
  const Run run = Train(*prepared, [](WorkerSeat& seat) {
    if (seat.me != WorkerId(0)) return;
    seat.at_phase = [](const std::string& phase) -> absl::Status {
      if (phase != kHostMemoryPhase) return absl::OkStatus();
      return absl::ResourceExhaustedError("the test says no");
    };
  });
  EXPECT_THAT(run.seats.said, ContainsRegex("worker 0: .*[0-9]+ groups? go(es)? to other "
                                            "workers from step 1 on"));
  EXPECT_TRUE(run.bits == CheckpointBits(expected->last_checkpoint));
}

TEST_F(DeviceWorkers, LeaveALinkThatIsFarSlowerThanPlanned) {
  JobConfig job = DeviceJob("d2d_swap", 93);
  job.train.steps = 6;
  JobConfig cpu = PlainJob("cpu");
  cpu.train.steps = 6;
  const auto expected = Trainer(cpu).Train();
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto prepared = PrepareJob(job, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const Lent lent = FirstLent(*prepared);
  const std::string lender = NameOfPlace(prepared->plan_text.mapping, lent.place);
  const Run run = Train(*prepared, [&](WorkerSeat& seat) {
    if (seat.me != lent.owner) return;
    seat.slowness = [&](const std::string& link) { return link == lender ? 200.0 : 1.0; };
  });
  EXPECT_THAT(run.seats.said,
              ContainsRegex(absl::StrCat("worker ", lent.owner.value, ": the link to ", lender,
                                         " is [0-9.]+x slower than planned: [0-9]+ "
                                         "groups? (go|goes|is|are) [a-z ]+from step ")));
  EXPECT_TRUE(run.bits == CheckpointBits(expected->last_checkpoint));
}

// Devices lend anew what each plan takes, and state comes along from wherever it was.
TEST_F(DeviceWorkers, MoveFromPlanToPlan) {
  const Bits expected = OnCpu();
  const std::vector<std::string> strategies = {"d2d_swap", "optimizer_offload", "weight_offload",
                                               "nvme_swap", "recompute"};
  std::map<std::string, PreparedJob> plans;
  for (const std::string& strategy : strategies) {
    auto prepared = PrepareJob(DeviceJob(strategy, 95), {});
    ASSERT_TRUE(prepared.ok()) << strategy << ": " << prepared.status();
    plans[strategy] = *std::move(prepared);
  }
  for (size_t first = 0; first < strategies.size(); ++first) {
    const std::string& second = strategies[(first + 1) % strategies.size()];
    const std::string& third = strategies[(first + 3) % strategies.size()];
    SCOPED_TRACE(absl::StrCat(strategies[first], ", ", second, ", ", third));
    FakeCuda::Reset();
    const int64_t before = FakeCuda::Get("allocations");
    const Run run = Train(plans[strategies[first]], [&](WorkerSeat& seat) {
      seat.next_plan = [&](int64_t steps) -> std::optional<PlanText> {
        if (steps == 1) return plans[second].plan_text;
        if (steps == 3) return plans[third].plan_text;
        return std::nullopt;
      };
    });
    EXPECT_THAT(run.seats.said, Not(HasSubstr("the plan stays")));
    EXPECT_TRUE(run.bits == expected) << "bits differ";
    EXPECT_EQ(FakeCuda::Get("freed_while_opened"), 0);
    EXPECT_EQ(FakeCuda::Get("allocations"), before) << "something of the devices is left";
  }
}

// The topology that plans are made with may have more devices than the machine.
TEST_F(DeviceWorkers, StayWhereAnotherPlanParksOnDevicesThatAreNotThere) {
  const auto first = PrepareJob(DeviceJob("recompute", 95), {});
  const auto second = PrepareJob(DeviceJob("d2d_swap", 95), {});
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  std::vector<WorkerDevice> alone(4);
  const Run run = Train(*first, [&](WorkerSeat& seat) {
    WorkerDevice& device = alone[static_cast<size_t>(seat.me.value)];
    device = *seat.device;
    device.index_of = [](DeviceId id) { return id.value; };
    device.visible = 1;
    seat.device = &device;
    seat.next_plan = [&](int64_t steps) {
      return steps == 1 ? std::optional(second->plan_text) : std::nullopt;
    };
  });
  EXPECT_THAT(run.seats.said, ContainsRegex("the plan stays: .*it parks tensors on device [1-3], "
                                            "and there are 1 CUDA devices"));
  EXPECT_TRUE(run.bits == OnCpu());
}

// Copies take milliseconds, and the profile says of layers that they take longer still.
TEST_F(DeviceWorkers, PlanAgainByWhatTheirStepsTook) {
  JobConfig job = PlainJob("cuda");
  job.model.hidden = 96;
  job.train.steps = 9;
  job.checkpoint.every_steps = 9;
  JobConfig cpu = job;
  cpu.pipeline.backend = "cpu";
  cpu.output.directory = folder_ + "/cpu";
  const auto plain = PrepareJob(cpu, {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  auto profile = ProfileLayers(*plain, {.warm_up = 0, .repetitions = 1}, {});
  ASSERT_TRUE(profile.ok()) << profile.status();
  for (LayerProfile& layer : profile->model.layers) {
    layer.forward = layer.recompute = Nanos(20'000'000);
    layer.input_backward = layer.weight_backward = layer.forward;
    layer.whole_backward = layer.forward * 2;
    layer.optimizer = Nanos(1'000'000);
  }
  profile->transport = {};
  profile->cores_together = {};
  std::filesystem::create_directories(folder_);
  job.pipeline.profile = folder_ + "/slow.yaml";
  ASSERT_TRUE(WriteTextFile(job.pipeline.profile, WriteProfile(*profile)).ok());
  job.topology.source = "file";
  job.topology.name = folder_ + "/slow_links.yaml";
  ASSERT_TRUE(WriteTextFile(job.topology.name, kSlowServer).ok());
  const auto prepared = PrepareJob(Tight(job, "auto", 90), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  FakeCuda::Set("rate", 10'000'000);
  const Run run = Train(*prepared);
  FakeCuda::Reset();
  EXPECT_THAT(run.seats.said, ContainsRegex("after step 7: re-planned in [^:]*: predicted [^ ]* ms "
                                            "instead of [^ ]* ms a step .*; moving took "));
  const auto expected = Trainer(cpu).Train();
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_TRUE(run.bits == CheckpointBits(expected->last_checkpoint));
}

}  // namespace
}  // namespace siphon
