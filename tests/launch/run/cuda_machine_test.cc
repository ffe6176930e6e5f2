#include "launch/run/cuda_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "planner/memory_plan.h"
#include "planner/status.h"
#include "planner/topology.h"
#include "tests/launch/run/parking_job.h"

namespace siphon {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr int64_t kGibibyte = int64_t{1} << 30;

TEST(CudaCapacity, IsADeviceOrAPartOfItLessWhatContextsTake) {
  const CudaMachine machine{.memory = {Bytes(80 * kGibibyte), Bytes(40 * kGibibyte)}};
  const Bytes context(kGibibyte);
  EXPECT_EQ(CudaCapacity(machine, 2, DeviceUse::kOneEach), Bytes(40 * kGibibyte) - context);
  EXPECT_EQ(CudaCapacity(machine, 2, DeviceUse::kShared), Bytes(40 * kGibibyte) - context);
  EXPECT_EQ(CudaCapacity(machine, 4, DeviceUse::kShared), Bytes(20 * kGibibyte) - context);
  EXPECT_EQ(CudaCapacity({.memory = {Bytes(1)}}, 8, DeviceUse::kShared), Bytes(1 << 20));
}

TEST(VisibleDevice, IsThePlansOrOneOfThoseThatThereAre) {
  EXPECT_EQ(VisibleDevice(DeviceId(3), 4, DeviceUse::kOneEach), 3);
  EXPECT_EQ(VisibleDevice(DeviceId(3), 2, DeviceUse::kShared), 1);
  EXPECT_EQ(VisibleDevice(DeviceId(3), 1, DeviceUse::kShared), 0);
}

class CheckOnCudaOf : public ParkingJob {
 protected:
  static std::string Problem(const PreparedJob& prepared, int devices, DeviceUse use) {
    return std::string(CheckOnCuda(prepared, devices, use).message());
  }
};

TEST_F(CheckOnCudaOf, FewerDevicesThanWorkersNamesTheFlag) {
  const auto prepared = PrepareJob(Job(4), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(Problem(*prepared, 4, DeviceUse::kOneEach), "");
  EXPECT_EQ(Problem(*prepared, 1, DeviceUse::kShared), "");
  EXPECT_THAT(Problem(*prepared, 1, DeviceUse::kOneEach),
              HasSubstr("pipeline.stages: the plan has 4 workers, up to device 3, and there are 1 "
                        "CUDA devices; fewer stages fit, --share_gpu puts"));
}

TEST_F(CheckOnCudaOf, NothingGoesThroughTheHostsMessages) {
  for (const char* transport : {"mpi", "shared_memory"}) {
    JobConfig job = Job(2);
    job.pipeline.transport = transport;
    const auto prepared = PrepareJob(job, {});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    EXPECT_THAT(
        Problem(*prepared, 2, DeviceUse::kOneEach),
        HasSubstr(std::string("pipeline.transport: ") + transport + " moves memory of the host"));
  }
}

// A plan for a server with more devices than the machine has.
TEST_F(CheckOnCudaOf, LendersAreDevicesThatThereAre) {
  auto prepared = PrepareJob(Job(2), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  prepared->parking.resize(2);
  prepared->parking[1].bytes[{Placement::kPeerSwap, DeviceId(0)}] = Bytes(1 << 20);
  EXPECT_EQ(Problem(*prepared, 2, DeviceUse::kOneEach), "");
  prepared->parking[0].bytes[{Placement::kPeerSwap, DeviceId(2)}] = Bytes(1 << 20);
  prepared->parking[0].bytes[{Placement::kPeerSwap, DeviceId(7)}] = Bytes(1 << 20);
  EXPECT_THAT(Problem(*prepared, 2, DeviceUse::kOneEach),
              HasSubstr("topology.name: the plan computes or parks tensors on devices 2, 7, and "
                        "there are 2 CUDA devices, from 0 on; topology.source: probe plans with"));
  EXPECT_THAT(Problem(*prepared, 3, DeviceUse::kOneEach), HasSubstr("tensors on device 7, and"));
  EXPECT_EQ(Problem(*prepared, 8, DeviceUse::kOneEach), "");
  EXPECT_EQ(Problem(*prepared, 1, DeviceUse::kShared), "");
  prepared->job.memory.plan = "plan.txt";
  EXPECT_THAT(Problem(*prepared, 2, DeviceUse::kOneEach), HasSubstr("memory.plan: the plan"));
}

TEST_F(CheckOnCudaOf, WorkersAreOnDevicesThatThereAre) {
  auto prepared = PrepareJob(Job(2), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  prepared->plan_text.mapping.device_of_worker = {DeviceId(5), DeviceId(0)};
  EXPECT_THAT(Problem(*prepared, 2, DeviceUse::kOneEach),
              HasSubstr("topology.name: the plan computes or parks tensors on device 5, and"));
}

// A lender without a worker may be the very device that others compute on.
TEST_F(CheckOnCudaOf, WhatIsParkedOnAnIdleDeviceIsMemoryOfOneThatThereIs) {
  auto prepared = PrepareJob(Job(2), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  prepared->parking.resize(2);
  const CudaMachine machine{.memory = {Bytes(kGibibyte)}};
  EXPECT_EQ(CheckDeviceMemory(*prepared, machine, DeviceUse::kShared), absl::OkStatus());
  prepared->parking[0].bytes[{Placement::kPeerSwap, DeviceId(1)}] = Bytes(2 * kGibibyte);
  EXPECT_EQ(CheckDeviceMemory(*prepared, machine, DeviceUse::kShared), absl::OkStatus())
      << "what a worker lends is in its peak";
  for (const int idle : {6, 7}) {
    prepared->parking[0].bytes[{Placement::kPeerSwap, DeviceId(idle)}] = Bytes(kGibibyte / 2);
  }
  const absl::Status refused = CheckDeviceMemory(*prepared, machine, DeviceUse::kShared);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              ContainsRegex("workers 0, 1 need [0-9.]+ [KM]iB at their peaks, tensors that are "
                            "parked there need 1.00 GiB, and device 0 has 1.00 GiB\n"));
  const CudaMachine more{
      .memory = {Bytes(kGibibyte), Bytes(kGibibyte), Bytes(1 << 20), Bytes(1 << 20)}};
  EXPECT_THAT(std::string(CheckDeviceMemory(*prepared, more, DeviceUse::kShared).message()),
              HasSubstr("the job does not fit: tensors that are parked there need 512 MiB, and "
                        "device 2 has 1.00 MiB\n"));
}

// Devices of all servers have numbers of their own; each machine knows its first ones.
TEST_F(CheckOnCudaOf, EachServerHasDevicesOfItsOwn) {
  auto prepared = PrepareJob(Job(4), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  Topology server = NvswitchTopology(2, BytesPerSecond(1'000'000'000), Nanos(0));
  prepared->plan_text.topology =
      SeveralServers(server, 2, {BytesPerSecond(1'000'000'000), Nanos(0)});
  prepared->plan_text.mapping = IdentityMapping(4);
  CudaMachine machine{.memory = {Bytes(kGibibyte), Bytes(kGibibyte)}};
  for (const DeviceUse use : {DeviceUse::kOneEach, DeviceUse::kShared}) {
    EXPECT_EQ(CheckDeviceMemory(*prepared, machine, use), absl::OkStatus());
  }
  machine.memory[1] = Bytes(1 << 10);
  EXPECT_THAT(std::string(CheckDeviceMemory(*prepared, machine, DeviceUse::kOneEach).message()),
              ContainsRegex("worker 1 needs [0-9.]+ [KM]iB at its peak, and device 1 of server 0 "
                            "has 1.00 KiB\n"));
}

// The owner has a context there.
TEST_F(CheckOnCudaOf, OwnersOfWhatAnIdleDeviceLendsHaveContextsThere) {
  auto prepared = PrepareJob(Job(2), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  prepared->parking.resize(2);
  for (WorkerParking& owner : prepared->parking) {
    owner.bytes[{Placement::kPeerSwap, DeviceId(2)}] = Bytes(kGibibyte);
  }
  CudaMachine machine{.memory = std::vector<Bytes>(3, Bytes(3 * kGibibyte))};
  EXPECT_EQ(CheckDeviceMemory(*prepared, machine, DeviceUse::kOneEach), absl::OkStatus());
  machine.memory[2] = Bytes(3 * kGibibyte - 1);
  EXPECT_THAT(std::string(CheckDeviceMemory(*prepared, machine, DeviceUse::kOneEach).message()),
              HasSubstr("tensors that are parked there need 3.00 GiB, and device 2 has "));
}

// All of those that share a device count there.
TEST_F(CheckOnCudaOf, PlansDoNotNeedMoreThanDevicesHave) {
  const auto prepared = PrepareJob(Job(4), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  CudaMachine machine{.memory = {Bytes(kGibibyte), Bytes(kGibibyte)}};
  EXPECT_EQ(CheckDeviceMemory(*prepared, machine, DeviceUse::kShared), absl::OkStatus());
  machine.memory[1] = Bytes(1 << 10);
  const absl::Status refused = CheckDeviceMemory(*prepared, machine, DeviceUse::kShared);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(
      std::string(refused.message()),
      ContainsRegex("the job does not fit: workers 1, 3 need [0-9.]+ [KM]iB at their peaks, "
                    "and device 1 has 1.00 KiB\n"));
}

TEST(WithDevicesMemory, SaysWhichDeviceHasNotMore) {
  const CudaMachine machine{.memory = {Bytes(80 * kGibibyte), Bytes(40 * kGibibyte)}};
  const auto said = [&machine](int workers, DeviceUse use) {
    const absl::Status refusal = absl::ResourceExhaustedError("too much");
    return std::string(WithDevicesMemory(refusal, machine, workers, use).message());
  };
  EXPECT_EQ(said(2, DeviceUse::kOneEach),
            "too much\n  memory.capacity is not set: of device 1's 40.0 GiB a worker may have 39.0 "
            "GiB, as a context takes 1.00 GiB; more takes a device with more memory");
  EXPECT_THAT(said(8, DeviceUse::kShared),
              HasSubstr("of device 1's 40.0 GiB each of 4 workers may have 9.00 GiB, as"));
}

// Before any tensor, a CUDA worker needs more than NCCL's memory and LibTorch's workspaces.
TEST_F(CheckOnCudaOf, PlansCountWhatLibTorchAndNcclTakeOfADevice) {
  const auto needed = [this](const char* backend) {
    JobConfig job = Job(2);
    job.pipeline.backend = backend;
    job.memory.strategy = "keep";
    const auto prepared = PrepareJob(job, {});
    SIPHON_CHECK(prepared.ok(), prepared.status().message());
    return prepared->plan_text.workers[0].communication;
  };
  EXPECT_GT(needed("cuda"), needed("cpu") + Bytes(4 * (32 << 20)));
}

// In an order that does not matter where the user has set something.
TEST(SetCudaEnvironment, MakesCuBlasDeterministicAndRanksOfADeviceHostsOfTheirOwn) {
  setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 1);
  SetCudaEnvironment(3, DeviceUse::kOneEach);
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":16:8");
  EXPECT_EQ(std::getenv("NCCL_HOSTID"), nullptr);
  unsetenv("CUBLAS_WORKSPACE_CONFIG");
  SetCudaEnvironment(3, DeviceUse::kShared);
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
  EXPECT_NE(std::getenv("NCCL_HOSTID"), nullptr);
}

TEST(SetCudaEnvironment, LetsSegmentsGrowWhereTheUserSaysNothingOfLibTorchsAllocator) {
  constexpr char kName[] = "PYTORCH_ALLOC_CONF";
  unsetenv(kName);
  setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64", 1);
  SetCudaEnvironment(0, DeviceUse::kOneEach);
  EXPECT_EQ(std::getenv(kName), nullptr);
  EXPECT_STREQ(std::getenv("PYTORCH_CUDA_ALLOC_CONF"), "max_split_size_mb:64");
  unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  SetCudaEnvironment(0, DeviceUse::kOneEach);
  EXPECT_STREQ(std::getenv(kName), "expandable_segments:True");
  setenv(kName, "expandable_segments:False", 1);
  SetCudaEnvironment(0, DeviceUse::kOneEach);
  EXPECT_STREQ(std::getenv(kName), "expandable_segments:False");
  unsetenv(kName);
}

// As nvidia-smi and NCCL number them, by whose words a topology may have been written.
TEST(SetCudaEnvironment, NumbersDevicesByBusUnlessTheUserSaysOtherwise) {
  constexpr char kName[] = "CUDA_DEVICE_ORDER";
  unsetenv(kName);
  SetCudaEnvironment(0, DeviceUse::kOneEach);
  EXPECT_STREQ(std::getenv(kName), "PCI_BUS_ID");
  setenv(kName, "FASTEST_FIRST", 1);
  SetCudaEnvironment(0, DeviceUse::kOneEach);
  EXPECT_STREQ(std::getenv(kName), "FASTEST_FIRST");
  unsetenv(kName);
}

// This program has no module beside it; the answer comes from a process of its own and stays.
TEST(TheCudaMachine, SaysInALineWhyThereIsNone) {
  EXPECT_THAT(TheCudaMachine().problem, HasSubstr("no CUDA: this build has no CUDA module"));
  EXPECT_THAT(TheCudaMachine().problem, HasSubstr("(pipeline.backend: cpu)"));
  EXPECT_TRUE(TheCudaMachine().memory.empty());
  EXPECT_EQ(&TheCudaMachine(), &TheCudaMachine());
}

}  // namespace
}  // namespace siphon
