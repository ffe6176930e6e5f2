#include "pipeline/synthetic/pace_transports.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/transport/paced_transport.h"
#include "tests/pipeline/synthetic/synthetic_testing.h"
#include "tests/pipeline/transport/thread_worlds.h"
#include "tests/pipeline/transport/transport_conformance.h"

namespace siphon {
namespace {

// Of the machine's time, and fast enough for a suite that sends megabytes.
World PacedWorld(int workers) {
  return {.name = absl::StrCat("Paced", workers, "Workers"),
          .workers = workers,
          .run = [](int count, const LivenessCheck& check, const WorkerBody& body) {
            ThreadJob job = MakeInProcessJob(count, check);
            job.transports = PaceTransports(
                std::move(job.transports),
                [](const Channel&) {
                  return CopyLinkRate{BytesPerSecond(2'000'000'000), Nanos(20'000)};
                },
                MonotonicClock());
            RunInThreads(job, body);
          }};
}

INSTANTIATE_TEST_SUITE_P(Paced, TransportConformance, testing::Values(PacedWorld(2), PacedWorld(3)),
                         WorldName);

constexpr Channel kForward{WorkerId(0), WorkerId(1), Lane::kForward};
constexpr Channel kBackward{WorkerId(1), WorkerId(0), Lane::kBackward};
constexpr Channel kControl{WorkerId(0), WorkerId(1), Lane::kControl};

class PacedTransports : public testing::Test {
 protected:
  TransferId Send(int worker, const Channel& channel) {
    return transports_[worker]->StartSend(channel, {ConstPart(bytes_)}).value();
  }
  TransferId Receive(int worker, const Channel& channel) {
    return transports_[worker]->StartReceive(channel, {MutablePart(room_)}).value();
  }
  bool IsDone(int worker, TransferId id) { return transports_[worker]->Test(id).value(); }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(1000, std::byte{7});
  std::vector<std::byte> room_ = std::vector<std::byte>(1000);
  std::shared_ptr<Nanos> now_ = std::make_shared<Nanos>();
  // 1000 bytes take 500 ns forward and 2000 ns backward, and 50 ns each.
  std::vector<std::unique_ptr<Transport>> transports_ = PaceTransports(
      MakeInProcessTransports(2, nullptr),
      [](const Channel& channel) {
        return CopyLinkRate{
            BytesPerSecond(channel.lane == Lane::kForward ? 2'000'000'000 : 500'000'000),
            Nanos(50)};
      },
      StandingClock(now_));
};

TEST_F(PacedTransports, AMessageArrivesWhenItsTimeHasPassedSinceBothHaveStarted) {
  *now_ = Nanos(100);
  const TransferId send = Send(0, kForward);
  *now_ = Nanos(300);
  const TransferId receive = Receive(1, kForward);
  EXPECT_TRUE(IsDone(0, send));
  *now_ = Nanos(849);
  EXPECT_FALSE(IsDone(1, receive));
  *now_ = Nanos(850);
  EXPECT_TRUE(IsDone(1, receive));
  EXPECT_EQ(transports_[1]->Test(receive).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(room_ == bytes_);
}

TEST_F(PacedTransports, LookingLateDelaysNothing) {
  const TransferId receive = Receive(1, kForward);
  *now_ = Nanos(100);
  Send(0, kForward);
  *now_ = Nanos(5000);
  EXPECT_TRUE(IsDone(1, receive));
}

TEST_F(PacedTransports, MessagesOfAChannelFollowEachOtherAndThoseOfOthersDoNot) {
  const TransferId first = Receive(1, kForward);
  const TransferId second = Receive(1, kForward);
  const TransferId back = Receive(0, kBackward);
  const TransferId control = Receive(1, kControl);
  EXPECT_FALSE(IsDone(1, second));
  Send(0, kForward);
  Send(0, kForward);
  Send(1, kBackward);
  Send(0, kControl);
  EXPECT_TRUE(IsDone(1, control));
  ASSERT_TRUE(transports_[1]->Wait(second).ok());
  EXPECT_EQ(*now_, Nanos(2 * 550));
  EXPECT_TRUE(IsDone(1, first));
  ASSERT_TRUE(transports_[0]->Wait(back).ok());
  EXPECT_EQ(*now_, Nanos(2050));
}

TEST(MessagePosts, RememberTheLastOfEachChannel) {
  std::vector<int64_t> memory(static_cast<size_t>(MessagePosts::BytesFor(3).value) / 8);
  const MessagePosts posts(3, absl::MakeSpan(reinterpret_cast<std::byte*>(memory.data()),
                                             memory.size() * sizeof(int64_t)));
  EXPECT_EQ(posts.PostOf(kForward, 0), Nanos(0)) << "nothing was sent";
  for (int64_t message = 0; message < 100; ++message) {
    posts.Post(kForward, message, Nanos(1000 + message));
    posts.Post(kBackward, message, Nanos(2000 + message));
  }
  EXPECT_EQ(posts.PostOf(kForward, 99), Nanos(1099));
  EXPECT_EQ(posts.PostOf(kBackward, 36), Nanos(2036));
  EXPECT_EQ(posts.PostOf(kForward, 35), Nanos(0)) << "64 are remembered";
  EXPECT_EQ(posts.PostOf(kForward, 100), Nanos(0));
}

}  // namespace
}  // namespace siphon
