#include "launch/profile/job_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "launch/plan_job/plan_job.h"
#include "launch/profile/planning_profile.h"
#include "launch/profile/predict_step.h"
#include "planner/performance/device_spec.h"
#include "planner/stage_cost.h"
#include "planner/topology.h"
#include "swap/device/cuda_module.h"

namespace siphon {
namespace {

using testing::HasSubstr;

struct Job {
  explicit Job(const std::string& kind = "gpt", const std::string& schedule = "1f1b") {
    config.model.kind = kind;
    config.model.layers = 4;
    config.model.hidden = 16;
    config.model.heads = 2;
    config.data.kind = "synthetic";
    config.data.sequence_length = 8;
    config.train.global_batch = 8;
    config.train.microbatch = 2;
    config.pipeline.stages = 2;
    config.pipeline.schedule = schedule;
    ModelOptions options;
    options.kind = kind;
    options.layers = 4;
    options.hidden = 16;
    options.heads = 2;
    options.sequence_length = 8;
    options.vocabulary = 64;
    model = BuildModelSpec(options).value();
    plan = PlanJob(config, model, 0).value();
  }
  PlannedJob Planned() const { return {config, model, plan}; }
  absl::StatusOr<JobProblem> On(JobMachine machine) const {
    machine.costs.device = &device;
    return ProblemOfJob(Planned(), machine);
  }

  JobConfig config;
  ModelSpec model;
  TrainingPlan plan;
  DeviceSpec device = FindDeviceSpec("V100").value();
};

void ExpectSameBytes(const StageCost& a, const StageCost& b, const std::string& where) {
  EXPECT_EQ(a.parameters, b.parameters) << where;
  EXPECT_EQ(a.gradients, b.gradients) << where;
  EXPECT_EQ(a.optimizer_state, b.optimizer_state) << where;
  EXPECT_EQ(a.stash, b.stash) << where;
  EXPECT_EQ(a.input, b.input) << where;
  EXPECT_EQ(a.output, b.output) << where;
  EXPECT_EQ(a.forward_workspace, b.forward_workspace) << where;
  EXPECT_EQ(a.backward_workspace, b.backward_workspace) << where;
  EXPECT_EQ(a.input_backward_workspace, b.input_backward_workspace) << where;
  EXPECT_EQ(a.weight_backward_workspace, b.weight_backward_workspace) << where;
}

// Tied embeddings are on both stages of gpt.
TEST(ProblemOfJob, HoldsWhatTheJobsPlanHolds) {
  for (const char* kind : {"gpt", "bert", "mlp"}) {
    for (const char* schedule : {"1f1b", "gpipe", "zb_h1"}) {
      const std::string where = std::string(kind) + " " + schedule;
      const Job job(kind, schedule);
      const auto made = job.On({});
      ASSERT_TRUE(made.ok()) << where << made.status();
      const auto costs = StageCosts(made->problem.profile, made->problem.partition);
      ASSERT_EQ(costs.size(), made->plan.stages.size());
      for (size_t stage = 0; stage < costs.size(); ++stage) {
        ExpectSameBytes(costs[stage], made->plan.stages[stage].cost, where);
      }
      EXPECT_TRUE(CheckPlanningProblem(made->problem).ok());
    }
  }
}

TEST(ProblemOfJob, PeaksAsTheJobsPlanDoes) {
  for (const char* kind : {"gpt", "bert", "mlp"}) {
    const Job job(kind);
    const auto made = job.On({});
    ASSERT_TRUE(made.ok()) << made.status();
    const auto predicted = PredictStep(made->plan);
    ASSERT_TRUE(predicted.ok()) << predicted.status();
    const auto simulated = Simulate(
        SimulationOf(made->problem, IdentityMapping(2), MemoryPlan(), made->problem.schedule));
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    for (size_t worker = 0; worker < 2; ++worker) {
      EXPECT_LE(Total(simulated->peak[worker]), Total(predicted->peak[worker])) << kind;
      EXPECT_GE(Total(simulated->peak[worker]) * 100, Total(predicted->peak[worker]) * 90) << kind;
    }
  }
}

TEST(ProblemOfJob, TakesCapacitiesOfTheJobFirstThenOfItsDevices) {
  Job job;
  EXPECT_TRUE(job.On({})->problem.capacity.empty());
  job.config.pipeline.backend = "cuda";
  EXPECT_EQ(job.On({})->problem.capacity, std::vector<Bytes>(2, job.device.capacity));
  job.config.memory.reserve = Bytes(1'000'000);
  Topology server = UniformTopology(3, BytesPerSecond(1'000'000'000), Nanos(0));
  for (TopologyDevice& device : server.devices) device.memory = Bytes(8'000'000);
  server.devices[2].memory = Bytes(6'000'000);
  EXPECT_EQ(job.On({.topology = &server})->problem.capacity,
            std::vector<Bytes>(2, Bytes(5'000'000)));
  server.devices[2].memory = Bytes(900'000);
  EXPECT_THAT(job.On({.topology = &server}).status().message(),
              HasSubstr("memory.reserve: 977 KiB of a device's 879 KiB leaves nothing"));
  job.config.memory.capacity = {Bytes(3'000'000), Bytes(4'000'000)};
  EXPECT_EQ(job.On({.topology = &server})->problem.capacity,
            (std::vector<Bytes>{Bytes(2'000'000), Bytes(3'000'000)}));
}

TEST(ProblemOfJob, LeavesTheReserveToDevicesThatOnlyLend) {
  Job job;
  Topology server = NvswitchTopology(4, BytesPerSecond(1'000'000'000), Nanos(0));
  server.devices[3].memory = Bytes(9'000'000);
  job.config.memory.reserve = Bytes(1'000'000);
  const auto memory = [&](int device) {
    return job.On({.topology = &server})->problem.topology.devices[device].memory;
  };
  job.config.memory.capacity = {Bytes(5'000'000)};
  EXPECT_EQ(memory(3), Bytes(8'000'000));
  EXPECT_EQ(memory(2), Bytes(0));  // not known
  server.devices[3].memory = Bytes(900'000);
  EXPECT_EQ(memory(3), Bytes(1));  // nothing worth lending; 0 would be no limit
}

// Each owner has a context there, of workers on devices.
TEST(ProblemOfJob, LeavesContextsOfOwnersToDevicesThatOnlyLend) {
  constexpr Bytes kMemory(int64_t{8} << 30);
  Job job;
  Topology server = NvswitchTopology(4, BytesPerSecond(1'000'000'000), Nanos(0));
  for (TopologyDevice& device : server.devices) device.memory = kMemory;
  const auto lent = [&] {
    return job.On({.topology = &server})->problem.topology.devices[3].memory;
  };
  EXPECT_EQ(lent(), kMemory);
  job.config.pipeline.backend = "cuda";
  EXPECT_EQ(lent(), kMemory - kCudaLenderContext * 2) << "two workers";
  server.links.resize(1);
  server.links[0] = {.from = DeviceId(1), .to = DeviceId(3), .rate = BytesPerSecond(1'000'000'000)};
  EXPECT_EQ(lent(), kMemory - kCudaLenderContext) << "one device reaches it";
}

TEST(ProblemOfJob, LimitsTheHostByTheSmallerOfBoth) {
  Job job;
  Topology server = UniformTopology(2, BytesPerSecond(1'000'000'000), Nanos(0));
  server.host_memory = Bytes(1000);
  EXPECT_EQ(job.On({.topology = &server})->problem.topology.host_memory, Bytes(1000));
  job.config.memory.host_capacity = Bytes(2000);
  EXPECT_EQ(job.On({.topology = &server})->problem.topology.host_memory, Bytes(1000));
  job.config.memory.host_capacity = Bytes(500);
  EXPECT_EQ(job.On({.topology = &server})->problem.topology.host_memory, Bytes(500));
  EXPECT_EQ(job.On({.workers = WorkerMachine::kDevices})->problem.topology.host_memory, Bytes(500));
}

TEST(ProblemOfJob, HasADriveWhereTheJobWantsOne) {
  Job job;
  Topology server = UniformTopology(2, BytesPerSecond(1'000'000'000), Nanos(0));
  EXPECT_TRUE(job.On({.topology = &server})->problem.topology.drives.empty());
  EXPECT_TRUE(job.On({.workers = WorkerMachine::kDevices})->problem.topology.drives.empty());
  const NvmeDrive assumed{.read = BytesPerSecond(1'000'000'000),
                          .write = BytesPerSecond(1'000'000'000),
                          .latency = Nanos(100'000)};
  EXPECT_EQ(job.On({.topology = &server, .needs_drive = true})->problem.topology.drives,
            std::vector<NvmeDrive>{assumed});
  job.config.memory.nvme_directory = "/scratch";
  EXPECT_EQ(job.On({.workers = WorkerMachine::kDevices})->problem.topology.drives,
            std::vector<NvmeDrive>{assumed});
  // Processes that share one memory have no devices, and nothing to be swapped from.
  EXPECT_TRUE(job.On({})->problem.topology.drives.empty());
  server.drives = {{.capacity = Bytes(1000), .read = BytesPerSecond(3), .write = BytesPerSecond(2)},
                   {.read = BytesPerSecond(3), .write = BytesPerSecond(2)}};
  EXPECT_EQ(job.On({.topology = &server})->problem.topology.drives, server.drives);
  job.config.memory.nvme_capacity = Bytes(3000);
  const auto limited = job.On({.topology = &server})->problem.topology.drives;
  EXPECT_EQ(limited[0].capacity, Bytes(1000));
  EXPECT_EQ(limited[1].capacity, Bytes(1500));
}

TEST(ProblemOfJob, CutsStripesOfADevicesBlocks) {
  Job job;
  EXPECT_EQ(job.On({})->problem.granule, Bytes(64));
  job.config.pipeline.backend = "cuda";
  EXPECT_EQ(job.On({})->problem.granule, Bytes(2 << 20));
}

TEST(ProblemOfJob, WantsADeviceForEachWorker) {
  const Job job;
  const Topology one = UniformTopology(1, BytesPerSecond(1), Nanos(0));
  EXPECT_THAT(job.On({.topology = &one}).status().message(),
              HasSubstr("topology.name: 1 devices, all linked alike has 1 devices for 2 workers"));
}

TEST(ProblemOfJob, DealsWorkersOutToServers) {
  Job job;
  job.config.pipeline.stages = 4;
  job.plan = PlanJob(job.config, job.model, 0).value();
  job.config.topology.servers = 2;
  job.config.topology.network_rate = BytesPerSecond(3'000'000'000);
  job.config.memory.host_capacity = Bytes(1 << 30);
  job.config.memory.nvme_capacity = Bytes(1 << 20);
  const auto made = job.On({.workers = WorkerMachine::kDevices, .needs_drive = true});
  ASSERT_TRUE(made.ok()) << made.status();
  const Topology& topology = made->problem.topology;
  EXPECT_TRUE(CheckTopology(topology).ok()) << CheckTopology(topology);
  EXPECT_EQ(topology.name, "workers of 2 machines");
  EXPECT_EQ(DeviceCount(topology), 4);
  EXPECT_EQ(ServerOf(topology, DeviceId(1)), 0);
  EXPECT_EQ(ServerOf(topology, DeviceId(2)), 1);
  EXPECT_EQ(topology.network.rate, BytesPerSecond(3'000'000'000));
  // Of each.
  EXPECT_EQ(topology.host_memory, Bytes(1 << 30));
  ASSERT_EQ(topology.drives.size(), 2u);
  EXPECT_EQ(topology.drives[1].capacity, Bytes(1 << 20));
  EXPECT_EQ(DriveOf(topology, DeviceId(3)), 1);

  job.config.topology.servers = 5;
  EXPECT_THAT(job.On({}).status().message(),
              HasSubstr("topology.servers: is 5, and the job has 4 workers; each server has at "
                        "least one"));
}

TEST(TopologyOfWorkers, JoinsEachTwoAndSharesOneUplink) {
  const Topology topology =
      TopologyOfWorkers(3, {.latency = Nanos(5), .host_rate = BytesPerSecond(7)}, Bytes(11));
  EXPECT_TRUE(CheckTopology(topology).ok());
  EXPECT_EQ(topology.links.size(), 6u);
  EXPECT_EQ(FindLink(topology, DeviceId(0), DeviceId(2))->rate, BytesPerSecond(7));
  ASSERT_EQ(topology.switches.size(), 1u);
  EXPECT_EQ(topology.switches[0].devices.size(), 3u);
  EXPECT_EQ(topology.switches[0].to_host, BytesPerSecond(7));
  EXPECT_EQ(topology.host_memory, Bytes(11));
}

// Layers share the host's step by the state that they have there; SGD has a count alone.
TEST(ProblemOfJob, StepsOnTheHostOnlyWhereTheOptimizerHasStateOfEachElement) {
  for (const auto& [optimizer, momentum, steps] :
       {std::tuple("adamw", 0.0, true), {"sgd", 0.9, true}, {"sgd", 0.0, false}}) {
    for (const WorkerMachine workers : {WorkerMachine::kProcesses, WorkerMachine::kDevices}) {
      Job job;
      job.config.train.optimizer = optimizer;
      job.config.train.momentum = momentum;
      job.plan = PlanJob(job.config, job.model, 0).value();
      const auto made = job.On({.workers = workers});
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_EQ(made->problem.host_step > Nanos(0), steps) << optimizer << " " << momentum;
    }
  }
}

}  // namespace
}  // namespace siphon
