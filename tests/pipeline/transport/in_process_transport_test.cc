#include "pipeline/transport/in_process_transport.h"

#include "tests/pipeline/transport/thread_worlds.h"
#include "tests/pipeline/transport/transport_conformance.h"

namespace siphon {
namespace {

World InProcessWorld(int workers) {
  return {.name = absl::StrCat("InProcess", workers, "Workers"),
          .workers = workers,
          .run = [](int count, const LivenessCheck& check, const WorkerBody& body) {
            ThreadJob job = MakeInProcessJob(count, check);
            RunInThreads(job, body);
          }};
}

INSTANTIATE_TEST_SUITE_P(InProcess, TransportConformance,
                         testing::Values(InProcessWorld(2), InProcessWorld(3), InProcessWorld(8)),
                         WorldName);

constexpr Channel kForward{WorkerId(0), WorkerId(1), Lane::kForward};

TEST(InProcessTransport, ASendIsNotDoneBeforeItsReceiveIsStarted) {
  auto transports = MakeInProcessTransports(2, nullptr);
  const std::vector<std::byte> sent(64, std::byte{7});
  std::vector<std::byte> received(64);
  const auto send = transports[0]->StartSend(kForward, {sent});
  ASSERT_TRUE(send.ok()) << send.status();
  EXPECT_EQ(transports[0]->Test(*send).value(), false);
  const auto receive = transports[1]->StartReceive(kForward, {MutablePart(received)});
  ASSERT_TRUE(receive.ok()) << receive.status();
  EXPECT_EQ(transports[0]->Test(*send).value(), true);
  EXPECT_EQ(transports[1]->Test(*receive).value(), true);
  EXPECT_TRUE(received == sent);
}

TEST(InProcessTransport, APeerThatLeavesEndsWhatWaitsForIt) {
  auto transports = MakeInProcessTransports(3, nullptr);
  std::vector<std::byte> room(64);
  const auto early = transports[1]->StartReceive(kForward, {MutablePart(room)});
  ASSERT_TRUE(early.ok()) << early.status();
  transports[0].reset();
  EXPECT_EQ(transports[1]->Wait(*early), absl::UnavailableError("worker 0 has gone away"));
  const auto late = transports[1]->StartSend({WorkerId(1), WorkerId(0), Lane::kForward}, {room});
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(transports[1]->Wait(*late), absl::UnavailableError("worker 0 has gone away"));
}

// A worker whose wait the liveness check has ended unwinds, and the buffers on its stack go.
TEST(InProcessTransport, NothingIsCopiedFromAWorkerWhoseWaitWasEnded) {
  bool alive = true;
  auto transports = MakeInProcessTransports(2, [&alive] {
    return alive ? absl::OkStatus() : absl::UnavailableError("another worker failed");
  });
  constexpr Channel kBack{WorkerId(1), WorkerId(0), Lane::kBackward};
  auto own = std::make_unique<std::vector<std::byte>>(64, std::byte{7});
  auto room = std::make_unique<std::vector<std::byte>>(64);
  const auto send = transports[0]->StartSend(kForward, {ConstPart(*own)});
  ASSERT_TRUE(send.ok()) << send.status();
  ASSERT_TRUE(transports[0]->StartReceive(kBack, {MutablePart(*room)}).ok());
  alive = false;
  EXPECT_EQ(transports[0]->Wait(*send), absl::UnavailableError("another worker failed"));
  own.reset();
  room.reset();
  std::vector<std::byte> received(64);
  const auto receive = transports[1]->StartReceive(kForward, {MutablePart(received)});
  const auto sent = transports[1]->StartSend(kBack, {ConstPart(received)});
  ASSERT_TRUE(receive.ok() && sent.ok());
  EXPECT_EQ(transports[1]->Test(*receive).value(), false);
  EXPECT_EQ(transports[1]->Test(*sent).value(), false);
  EXPECT_TRUE(received == std::vector<std::byte>(64));
}

TEST(InProcessTransport, NothingIsCopiedFromAWorkerThatHasLeft) {
  auto transports = MakeInProcessTransports(2, nullptr);
  auto sent = std::make_unique<std::vector<std::byte>>(64, std::byte{7});
  ASSERT_TRUE(transports[0]->StartSend(kForward, {ConstPart(*sent)}).ok());
  transports[0].reset();
  sent.reset();
  std::vector<std::byte> received(64);
  const auto receive = transports[1]->StartReceive(kForward, {MutablePart(received)});
  ASSERT_TRUE(receive.ok()) << receive.status();
  EXPECT_EQ(transports[1]->Test(*receive).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(received == std::vector<std::byte>(64));
}

}  // namespace
}  // namespace siphon
