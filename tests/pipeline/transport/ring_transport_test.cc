#include "pipeline/transport/ring_transport.h"

#include "tests/pipeline/transport/thread_worlds.h"
#include "tests/pipeline/transport/transport_conformance.h"

namespace siphon {
namespace {

World RingWorld(int workers, Bytes capacity) {
  return {.name = absl::StrCat("Ring", workers, "WorkersOf", capacity.value, "Bytes"),
          .workers = workers,
          .run = [capacity](int count, const LivenessCheck& check, const WorkerBody& body) {
            ThreadJob job = MakeRingJob(count, LayOutRings(AllPairs(count, capacity)), check);
            ASSERT_EQ(job.transports.size(), static_cast<size_t>(count));
            RunInThreads(job, body);
          }};
}

// The smallest rings there are pass every message in many pieces, and stall at every place a
// message can stall.
INSTANTIATE_TEST_SUITE_P(Ring, TransportConformance,
                         testing::Values(RingWorld(2, Bytes(4096)), RingWorld(3, Bytes(64)),
                                         RingWorld(4, Bytes(1 << 20)), RingWorld(8, Bytes(4096))),
                         WorldName);

constexpr Channel kForward{WorkerId(0), WorkerId(1), Lane::kForward};

TEST(RingTransport, ASendThatFitsIsDoneWithoutItsReceiver) {
  ThreadJob job = MakeRingJob(2, LayOutRings({{kForward, Bytes(4096)}}), nullptr);
  ASSERT_EQ(job.transports.size(), 2u);
  const std::vector<std::byte> sent = Pattern(1, 1000);
  const auto send = job.transports[0]->StartSend(kForward, {sent});
  ASSERT_TRUE(send.ok()) << send.status();
  EXPECT_EQ(job.transports[0]->Test(*send).value(), true);
  std::vector<std::byte> received(1000);
  const auto receive = job.transports[1]->StartReceive(kForward, {MutablePart(received)});
  ASSERT_TRUE(receive.ok()) << receive.status();
  EXPECT_EQ(job.transports[1]->Test(*receive).value(), true);
  EXPECT_TRUE(received == sent);
}

TEST(RingTransport, ASendLargerThanItsRingWaitsForTheReceiver) {
  ThreadJob job = MakeRingJob(2, LayOutRings({{kForward, Bytes(4096)}}), nullptr);
  ASSERT_EQ(job.transports.size(), 2u);
  const std::vector<std::byte> sent = Pattern(1, 10'000);
  std::vector<std::byte> received(sent.size());
  const TransferId send = job.transports[0]->StartSend(kForward, {sent}).value();
  EXPECT_EQ(job.transports[0]->Test(send).value(), false);
  const TransferId receive =
      job.transports[1]->StartReceive(kForward, {MutablePart(received)}).value();
  EXPECT_EQ(job.transports[1]->Test(receive).value(), false);
  EXPECT_EQ(job.transports[0]->Test(send).value(), false);
  EXPECT_EQ(job.transports[1]->Test(receive).value(), false);
  EXPECT_EQ(job.transports[0]->Test(send).value(), true);
  EXPECT_EQ(job.transports[1]->Test(receive).value(), true);
  EXPECT_TRUE(received == sent);
}

TEST(RingTransport, ABrokenChannelStaysBroken) {
  ThreadJob job = MakeRingJob(2, LayOutRings({{kForward, Bytes(4096)}}), nullptr);
  ASSERT_EQ(job.transports.size(), 2u);
  const std::vector<std::byte> sent(64);
  std::vector<std::byte> wrong(32), right(64);
  ASSERT_TRUE(job.transports[0]->StartSend(kForward, {sent}).ok());
  ASSERT_TRUE(job.transports[0]->StartSend(kForward, {sent}).ok());
  const TransferId first = job.transports[1]->StartReceive(kForward, {MutablePart(wrong)}).value();
  const TransferId second = job.transports[1]->StartReceive(kForward, {MutablePart(right)}).value();
  const absl::Status status = job.transports[1]->Wait(first);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(job.transports[1]->Wait(second), status);
}

TEST(RingTransport, ASenderThatStillWaitsLearnsThatItsMessageWasRefused) {
  ThreadJob job = MakeRingJob(2, LayOutRings({{kForward, Bytes(64)}}), nullptr);
  ASSERT_EQ(job.transports.size(), 2u);
  const std::vector<std::byte> sent(1000);
  std::vector<std::byte> room(32);
  const TransferId send = job.transports[0]->StartSend(kForward, {sent}).value();
  const TransferId receive = job.transports[1]->StartReceive(kForward, {MutablePart(room)}).value();
  EXPECT_EQ(job.transports[1]->Wait(receive).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(job.transports[0]->Wait(send),
            absl::FailedPreconditionError("worker 0 -> worker 1 (forward): the receiver expected a "
                                          "message of other sizes; under way was one of 1 part of "
                                          "1000 bytes (1000)"));
}

TEST(RingTransport, AChannelWithoutARingIsRefusedByName) {
  ThreadJob job = MakeRingJob(2, LayOutRings({{kForward, Bytes(64)}}), nullptr);
  ASSERT_EQ(job.transports.size(), 2u);
  const auto refused = job.transports[0]->StartSend({WorkerId(0), WorkerId(1), Lane::kControl}, {});
  EXPECT_EQ(refused.status(),
            absl::InvalidArgumentError("no ring was laid out for worker 0 -> worker 1 (control); "
                                       "worker 0 has 1 rings"));
}

TEST(LayOutRings, KeepsEveryRingOnCacheLinesOfItsOwn) {
  const RingLayout layout = LayOutRings(AllPairs(4, Bytes(100)));
  ASSERT_EQ(layout.offsets.size(), layout.rings.size());
  int64_t end = 4 * 64;  // the doorbells
  for (size_t ring = 0; ring < layout.rings.size(); ++ring) {
    EXPECT_EQ(layout.rings[ring].capacity, Bytes(128));  // rounded up
    EXPECT_EQ(layout.offsets[ring], end);
    end += 128 + 128;  // positions and data
  }
  EXPECT_EQ(layout.region_bytes, Bytes(end + 64));  // room to align the base
}

TEST(MakeRingTransport, RefusesWhatCannotWork) {
  std::vector<std::byte> region(4096);
  const auto make = [&](WorkerId me, std::vector<RingSpec> rings) {
    return MakeRingTransport(me, absl::MakeSpan(region), LayOutRings(std::move(rings)), nullptr)
        .status();
  };
  EXPECT_TRUE(make(WorkerId(0), {{kForward, Bytes(64)}}).ok());
  EXPECT_TRUE(make(WorkerId(0), {}).ok());  // a worker that is alone
  EXPECT_THAT(make(WorkerId(0), {{kForward, Bytes(8192)}}).message(),
              testing::HasSubstr("the region has 4096"));
  EXPECT_THAT(make(WorkerId(0), {{kForward, Bytes(64)}, {kForward, Bytes(64)}}).message(),
              testing::HasSubstr("two rings were laid out for worker 0 -> worker 1 (forward)"));
  EXPECT_THAT(
      make(WorkerId(0), {{{WorkerId(1), WorkerId(1), Lane::kForward}, Bytes(64)}}).message(),
      testing::HasSubstr("no channel worker 1 -> worker 1"));
  EXPECT_THAT(make(WorkerId(2), {{kForward, Bytes(64)}}).message(),
              testing::HasSubstr("worker 2 is at no end"));
}

}  // namespace
}  // namespace siphon
