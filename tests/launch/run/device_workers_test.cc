// Whole jobs whose workers compute on a device beside the CPU: LibTorch's tensors are those of a
// device of the CPU's memory and kernels (other_device.h); copies, lent memory and locked memory
// are those of the CUDA module, on the fake runtime. What comes out has the CPU's bits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/job_memory.h"
#include "launch/run/device_lending.h"
#include "launch/run/fit_memory.h"
#include "launch/run/parking_room.h"
#include "launch/run/trainer.h"
#include "pipeline/transport/in_process_transport.h"
#include "planner/status.h"
#include "swap/device/load_cuda_module.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/parking_job.h"
#include "tests/launch/run/seated_run.h"
#include "tests/pipeline/torch/other_device.h"
#include "tests/support/fake_cuda/fake_control.h"

namespace siphon {
namespace {

using ::testing::HasSubstr;
using Bits = std::map<std::string, std::string>;

constexpr Bytes kMessages(3 << 20);  // what NCCL is said to take

const CudaModule& TheCudaModule() {
  static const CudaModule* const module = [] {
    const auto loaded = LoadCudaModule(SIPHON_CUDA_MODULE);
    SIPHON_CHECK(loaded.ok(), loaded.status().message());
    return *loaded;
  }();
  return *module;
}

// LibTorch's side of a worker on that device; it remembers what it was limited to.
class OtherTorchDevice final : public TorchDevice {
 public:
  ComputeDevice device() const override { return testing::kOtherDevice; }
  std::optional<void*> work_stream() const override { return std::nullopt; }
  absl::Status Limit(Bytes most) override {
    limit_ = most;
    return absl::OkStatus();
  }
  TorchMemory memory() const override { return {}; }
  void ResetPeak() override {}
  Bytes limit() const { return limit_; }

 private:
  Bytes limit_;
};

class DeviceWorkers : public ParkingJob {
 protected:
  void SetUp() override {
    ASSERT_TRUE(FakeCuda::IsThere()) << "LD_PRELOAD the fake libcudart";
    FakeCuda::Reset();
  }

  // Each kind of device draws masks by generators of its own, and fuses attention its own way.
  JobConfig PlainJob(const std::string& backend) const {
    JobConfig job = Job(4);
    job.model.dropout = 0;
    job.model.flash_attention = false;
    job.train.steps = 4;
    job.checkpoint.every_steps = 2;
    job.pipeline.backend = backend;
    if (backend == "cuda") job.topology.name = "v100x4_nv2";  // what devices are planned for
    job.memory.strategy = "keep";
    job.output.directory = absl::StrCat(folder_, "/", backend);
    return job;
  }
  // With so many hundredths of what tensors take where all of them stay.
  static JobConfig Tight(JobConfig job, const std::string& strategy, int64_t percent) {
    const auto prepared = PrepareJob(job, {});
    SIPHON_CHECK(prepared.ok(), prepared.status().message());
    const auto estimate =
        EstimateJob({prepared->job, prepared->model.spec, prepared->plan}, Accounting::kRuntime);
    SIPHON_CHECK(estimate.ok(), estimate.status().message());
    for (const MemoryByKind& worker : estimate->workers) {
      const Bytes beside = worker[MemoryKind::kCommunication];
      job.memory.capacity.push_back(beside + Bytes((Total(worker) - beside).value * percent / 100));
    }
    // Those that lend have room.
    const Bytes most = *std::max_element(job.memory.capacity.begin(), job.memory.capacity.end());
    job.memory.capacity = {most};
    job.memory.strategy = strategy;
    return job;
  }
  JobConfig DeviceJob(const std::string& strategy, int64_t percent) const {
    return Tight(PlainJob("cuda"), strategy, percent);
  }
  // What the CPU makes of the job, everything kept.
  Bits OnCpu() const {
    const auto outcome = Trainer(PlainJob("cpu")).Train();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? CheckpointBits(outcome->last_checkpoint) : Bits();
  }

  struct Run {
    SeatedRun seats;
    std::vector<Bytes> limits;  // [worker]
    Bits bits;
  };
  static Run Train(const PreparedJob& prepared, const SeatChange& change = nullptr) {
    Run run;
    run.limits.resize(static_cast<size_t>(WorkerCount(prepared.plan.training)));
    std::vector<OtherTorchDevice> devices(run.limits.size());
    std::vector<WorkerDevice> seats(run.limits.size());
    for (size_t worker = 0; worker < seats.size(); ++worker) {
      seats[worker] = {&devices[worker], &TheCudaModule(),
                       [](DeviceId device) { return device.value % 2; }};
    }
    run.seats = RunSeats(prepared, [&](WorkerSeat& seat) {
      seat.device = &seats[static_cast<size_t>(seat.me.value)];
      seat.more_shared = nullptr;
      if (change) change(seat);
    });
    for (size_t worker = 0; worker < seats.size(); ++worker) {
      EXPECT_TRUE(run.seats.ends[worker].ok()) << run.seats.ends[worker].status();
      run.limits[worker] = devices[worker].limit();
    }
    if (run.seats.ends[0].ok()) run.bits = CheckpointBits(run.seats.ends[0]->last_checkpoint);
    return run;
  }
};

TEST_F(DeviceWorkers, HaveTheCpusBitsWithEveryStrategy) {
  const Bits expected = OnCpu();
  ASSERT_FALSE(expected.empty());
  const int64_t kept_free = FakeCuda::Get("allocations");
  for (const char* strategy : {"keep", "recompute", "host_swap", "d2d_swap", "mpress",
                               "optimizer_offload", "weight_offload", "auto"}) {
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
  EXPECT_EQ(lending.Close(), absl::OkStatus());
  EXPECT_EQ(FakeCuda::Get("allocations"), kept_free);
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

}  // namespace
}  // namespace siphon
