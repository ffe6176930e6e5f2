#include "launch/plan_job/plan_rings.h"

#include <gtest/gtest.h>

#include <map>

#include "launch/plan_job/plan_job.h"

namespace siphon {
namespace {

struct Planned {
  ModelSpec model;
  TrainingPlan plan;
  std::map<Channel, Bytes> rings;
};

Planned PlanGpt(int64_t stages, bool tied) {
  Planned planned;
  planned.model = BuildModelSpec({.kind = "gpt",
                                  .layers = 4,
                                  .hidden = 16,
                                  .heads = 2,
                                  .vocabulary = 32,
                                  .sequence_length = 8,
                                  .tie_embeddings = tied})
                      .value();
  JobConfig job;
  job.pipeline.stages = stages;
  planned.plan = PlanJob(job, planned.model, 0).value();
  for (const RingSpec& ring : PlanRings(planned.plan, planned.model)) {
    planned.rings[ring.channel] = ring.capacity;
  }
  return planned;
}

TEST(PlanRings, NeighboursGetRoomForTwoBoundaryMessagesEachWay) {
  const Planned planned = PlanGpt(3, false);
  const int64_t message = 4 * 8 * 16 * 4;  // microbatch x sequence x hidden x fp32
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(1, 2)}) {
    EXPECT_GE(planned.rings.at({WorkerId(a), WorkerId(b), Lane::kForward}).value, 2 * message);
    EXPECT_GE(planned.rings.at({WorkerId(b), WorkerId(a), Lane::kBackward}).value, 2 * message);
  }
  EXPECT_FALSE(planned.rings.contains({WorkerId(0), WorkerId(2), Lane::kForward}));
}

TEST(PlanRings, TiedEmbeddingsConnectFirstAndLastWorkerBothWays) {
  const Planned tied = PlanGpt(3, true);
  const Planned untied = PlanGpt(3, false);
  const Channel up{WorkerId(0), WorkerId(2), Lane::kControl};
  EXPECT_GT(tied.rings.at(up), untied.rings.at(up));
  EXPECT_TRUE(tied.rings.contains({WorkerId(2), WorkerId(0), Lane::kControl}));
}

TEST(PlanRings, OneWorkerNeedsNone) { EXPECT_TRUE(PlanGpt(1, true).rings.empty()); }

TEST(PlanRings, IncomingBytesCountEachRingOnceAtItsReceiver) {
  const Planned planned = PlanGpt(3, true);
  Bytes all;
  std::vector<RingSpec> rings = PlanRings(planned.plan, planned.model);
  for (const RingSpec& ring : rings) all += ring.capacity;
  Bytes sum;
  for (int worker = 0; worker < 3; ++worker) sum += IncomingRingBytes(rings, WorkerId(worker));
  EXPECT_EQ(sum, all);
}

TEST(TransportKindOf, IsNcclBetweenDevicesUnlessTheJobSaysOtherwise) {
  const auto kind = [](const std::string& transport, const std::string& backend) {
    return TransportKindOf({.backend = backend, .transport = transport});
  };
  EXPECT_EQ(kind("auto", "cpu"), TransportKind::kRings);
  EXPECT_EQ(kind("auto", "cuda"), TransportKind::kNccl);
  EXPECT_EQ(kind("nccl", "cuda"), TransportKind::kNccl);
  EXPECT_EQ(kind("shared_memory", "cuda"), TransportKind::kRings);
  EXPECT_EQ(kind("mpi", "cuda"), TransportKind::kMpi);
}

// 0 -> 1 -> 2 and back; the embedding is shared by the first and the last.
TEST(PlanNccl, HasAChannelForEachBoundaryAndForSharedGradients) {
  const std::vector<Channel> expected = {
      {WorkerId(0), WorkerId(1), Lane::kForward},  {WorkerId(0), WorkerId(2), Lane::kControl},
      {WorkerId(1), WorkerId(0), Lane::kBackward}, {WorkerId(1), WorkerId(2), Lane::kForward},
      {WorkerId(2), WorkerId(0), Lane::kControl},  {WorkerId(2), WorkerId(1), Lane::kBackward}};
  const NcclTransportOptions options = PlanNccl(PlanGpt(3, true).plan, WorkerId(1));
  EXPECT_EQ(options.me, WorkerId(1));
  EXPECT_EQ(options.workers, 3);
  EXPECT_EQ(options.channels, expected);
  EXPECT_EQ(PlanNccl(PlanGpt(3, false).plan, WorkerId(1)).channels.size(), 4u);
}

TEST(PlanHostRings, HaveControlAndRecordsBothWaysAndNoTensors) {
  const Planned planned = PlanGpt(3, true);
  const std::vector<RingSpec> rings = PlanHostRings(planned.plan);
  // 0 <-> 1, 1 <-> 2 and 0 <-> 2 have records, the same pairs but the second have control.
  EXPECT_EQ(rings.size(), 3u * 2 + 2 * 2);
  for (const RingSpec& ring : rings) EXPECT_LE(ring.capacity, Bytes(64 << 10));
}

TEST(MessageMemory, OfNcclIsThatOfEachWorkersEnds) {
  const Planned planned = PlanGpt(3, false);
  const std::vector<Bytes> nccl = MessageMemory(TransportKind::kNccl, planned.plan, planned.model);
  ASSERT_EQ(nccl.size(), 3u);
  EXPECT_EQ(nccl[1], nccl[0] * 2);
  EXPECT_EQ(nccl[2], nccl[0]);
  EXPECT_TRUE(MessageMemory(TransportKind::kMpi, planned.plan, planned.model).empty());
}

}  // namespace
}  // namespace siphon
