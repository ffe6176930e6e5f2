#include "launch/plan_job/job_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "launch/plan_job/plan_job.h"
#include "launch/plan_job/plan_rings.h"

namespace siphon {
namespace {

class JobMemory : public testing::Test {
 protected:
  // Four microbatches on two workers.
  JobMemory() {
    job_.pipeline.stages = 2;
    job_.pipeline.schedule = "gpipe";
    job_.train.global_batch = 8;
    job_.train.microbatch = 2;
  }

  void Plan(int64_t hidden, int64_t sequence) {
    model_ = BuildModelSpec({.kind = "gpt",
                             .layers = 2,
                             .hidden = hidden,
                             .heads = 2,
                             .vocabulary = 32,
                             .sequence_length = sequence})
                 .value();
    plan_ = PlanJob(job_, model_, 0).value();
  }

  SentTensors Sent(const std::string& transport) {
    job_.pipeline.transport = transport;
    return MemoryInputsOf({job_, model_, plan_}).value().sent;
  }

  MemoryByKind Worker(const std::string& transport, int worker) {
    job_.pipeline.transport = transport;
    return EstimateJob({job_, model_, plan_}, Accounting::kRuntime).value().workers[worker];
  }

  JobConfig job_;
  ModelSpec model_;
  TrainingPlan plan_;
};

TEST_F(JobMemory, KeepsWhatIsSentOnlyWhereNoRingHoldsIt) {
  Plan(/*hidden=*/16, /*sequence=*/8);
  EXPECT_EQ(Sent("auto"), SentTensors::kCopied);
  EXPECT_EQ(Sent("shared_memory"), SentTensors::kCopied);
  EXPECT_EQ(Sent("mpi"), SentTensors::kUntilReceived);
}

TEST_F(JobMemory, CountsARingInsteadOfTheTensorThatWaits) {
  Plan(/*hidden=*/16, /*sequence=*/8);
  const Bytes message(2 * 8 * 16 * 4);  // microbatch, sequence, hidden, fp32
  MemoryByKind rings = Worker("auto", 0);
  const MemoryByKind messages = Worker("mpi", 0);
  // In its first backward worker 0 holds the gradient that it received and, unless a ring has it,
  // what its last forward sent.
  EXPECT_EQ(rings[MemoryKind::kBoundary], message);
  EXPECT_EQ(messages[MemoryKind::kBoundary], message * 2);
  EXPECT_EQ(messages[MemoryKind::kCommunication], Bytes());
  EXPECT_GE(rings[MemoryKind::kCommunication], message * kMessagesPerRing);
  rings[MemoryKind::kBoundary] += message;
  rings[MemoryKind::kCommunication] = Bytes();
  EXPECT_EQ(rings, messages);
}

// 4 samples of 2,048 x 1,024 numbers: two of those messages and the room for control exceed the
// largest ring, 64 MiB.
TEST_F(JobMemory, KeepsWhatPassesThroughARingInPieces) {
  job_.train.microbatch = 4;
  Plan(/*hidden=*/1024, /*sequence=*/2048);
  EXPECT_EQ(Sent("auto"), SentTensors::kUntilReceived);
  job_.train.microbatch = 2;
  Plan(/*hidden=*/1024, /*sequence=*/2048);
  EXPECT_EQ(Sent("auto"), SentTensors::kCopied);
}

TEST(CapacityUnit, IsFinerWhereAMebibyteIsMuch) {
  EXPECT_EQ(CapacityUnitFor(Bytes(300'000)).name, "KiB");
  EXPECT_EQ(CapacityUnitFor(Bytes((int64_t{16} << 20) - 1)).bytes, Bytes(1024));
  EXPECT_EQ(CapacityUnitFor(Bytes(int64_t{16} << 20)).name, "MiB");
  EXPECT_EQ(CapacityUnitFor(Bytes(int64_t{16} << 20)).bytes, Bytes(int64_t{1} << 20));
}

// gpipe has four microbatches in flight on both workers.
TEST_F(JobMemory, CountsTheDataThatADeviceHasCopiesOf) {
  job_.pipeline.backend = "cuda";
  const auto beside = [this](int64_t sequence, int worker) {
    Plan(/*hidden=*/16, sequence);
    return MemoryInputsOf({job_, model_, plan_}).value().communication[worker];
  };
  const auto ids = [](int64_t sequence) { return Bytes(2 * sequence * 8); };  // of a microbatch
  for (const int worker : {0, 1}) {
    const Bytes more = beside(/*sequence=*/320, worker) - beside(/*sequence=*/64, worker);
    EXPECT_EQ(more, (ids(320) - ids(64)) * 4) << worker;
  }
}

// Its allocator cannot fill what it may take; of little, the ends of its first blocks are more.
TEST_F(JobMemory, LeavesAFortiethOfADeviceToItsAllocator) {
  job_.pipeline.backend = "cuda";
  Plan(/*hidden=*/16, /*sequence=*/64);
  const auto beside = [this](int64_t mebibytes) {
    job_.memory.capacity = {Bytes(mebibytes << 20)};
    return MemoryInputsOf({job_, model_, plan_}).value().communication[0];
  };
  const Bytes least = beside(100);
  EXPECT_EQ(beside(40 * 64), least);
  EXPECT_EQ(beside(40 * 1000) - least, Bytes((1000 - 64) << 20));
  job_.memory.capacity.clear();
  EXPECT_EQ(MemoryInputsOf({job_, model_, plan_}).value().communication[0], least);
}

// Though what is left unused grows with it.
TEST_F(JobMemory, SuggestsACapacityThatFits) {
  for (const char* backend : {"cuda", "cpu"}) {
    job_.pipeline.backend = backend;
    Plan(/*hidden=*/4096, /*sequence=*/256);
    job_.memory.capacity = {Bytes(int64_t{3} << 30)};
    const PlannedJob planned{job_, model_, plan_};
    EXPECT_TRUE(absl::IsResourceExhausted(CheckFits(planned)));
    const FittingChange more = ChangesThatFit(planned).back();
    ASSERT_EQ(more.setting.substr(0, 16), "memory.capacity=");
    const Bytes suggested = ParseBytes(more.setting.substr(16)).value();
    EXPECT_GT(suggested, Bytes(int64_t{3} << 30));
    job_.memory.capacity = {suggested};
    EXPECT_EQ(CheckFits(planned), absl::OkStatus()) << more.setting;
    job_.memory.capacity = {suggested - CapacityUnitFor(suggested).bytes};
    EXPECT_TRUE(absl::IsResourceExhausted(CheckFits(planned))) << "a unit less does not";
  }
}

}  // namespace
}  // namespace siphon
