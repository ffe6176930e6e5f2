// What goes wrong between workers that talk over NCCL: all of it ends, with a report, and frees
// what waits on devices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/transport/nccl_api.h"
#include "tests/pipeline/transport/nccl_threads.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/support/fake_nccl/fake_nccl_control.h"

namespace siphon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr WorkerId kFirst{0}, kSecond{1};
constexpr Channel kForward{kFirst, kSecond, Lane::kForward};
constexpr Channel kBackward{kSecond, kFirst, Lane::kBackward};
constexpr Nanos kShort{30'000'000};

class NcclFaults : public testing::Test {
 protected:
  void SetUp() override {
    FakeCuda::Reset();
    FakeNccl::Reset();
  }
  // Whatever happened, nobody is left on a stream.
  void TearDown() override {
    EXPECT_EQ(FakeNccl::Get("communicators"), 0);
    EXPECT_EQ(FakeNccl::Get("waiting"), 0);
    FakeNccl::Reset();
  }

  static NcclThreads Two(const LivenessCheck& check = nullptr,
                         const std::function<void(NcclTransportOptions&)>& change = Impatient) {
    return MakeNcclThreads(MakeInProcessJob(2, nullptr), check, change);
  }
  static void Impatient(NcclTransportOptions& options) { options.message_patience = kShort; }
  static void SoonSure(NcclTransportOptions& options) { options.loss_patience = kShort; }
};

TEST_F(NcclFaults, APartnerThatNeverComesEndsAReceiveWithAReport) {
  NcclThreads job = Two();
  ASSERT_TRUE(job.ok());
  const TransferId receive =
      job.transport(1).StartReceive(kForward, {job.memory[1]->Take(64)}).value();
  const TransferId other = job.transport(1).StartSend(kBackward, {job.memory[1]->Take(64)}).value();
  const absl::Status status = job.transport(1).Wait(receive);
  EXPECT_EQ(status,
            absl::UnavailableError("worker 0 -> worker 1 (forward): message 0, 1 part of 64 bytes "
                                   "(64) has not come: not within 30.0 ms; worker 0 has not "
                                   "started it; under way besides: 1 on worker 1 -> worker 0 "
                                   "(backward)"));
  // Everything else of this worker has ended with it, and nothing begins any more.
  EXPECT_EQ(job.transport(1).Wait(other), status);
  EXPECT_EQ(FakeNccl::Get("aborts"), 4);
  const TransferId late =
      job.transport(1).StartReceive(kForward, {job.memory[1]->Take(64)}).value();
  EXPECT_EQ(job.transport(1).Wait(late), status);
}

TEST_F(NcclFaults, APartnerThatNeverComesEndsASend) {
  NcclThreads job = Two();
  ASSERT_TRUE(job.ok());
  const TransferId send = job.transport(0).StartSend(kForward, {job.memory[0]->Take(64)}).value();
  const absl::Status status = job.transport(0).Wait(send);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("message 0, 1 part of 64 bytes (64) has not gone"));
}

// As a schedule that the validator refuses: each sends first what the other one receives second.
TEST_F(NcclFaults, AWrongOrderHangsUntilTheDeadlineOnBothWorkers) {
  NcclThreads job = Two();
  ASSERT_TRUE(job.ok());
  std::vector<absl::Status> statuses(2);
  std::vector<std::thread> threads;
  for (size_t me = 0; me < 2; ++me) {
    threads.emplace_back([&, me] {
      Transport& transport = job.transport(static_cast<int>(me));
      const Channel out = me == 0 ? kForward : kBackward;
      const TransferId send = transport.StartSend(out, {job.memory[me]->Take(64)}).value();
      statuses[me] = transport.Wait(send);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(status.message(), HasSubstr("has not gone"));
  }
}

// What no validated program does: two messages ahead on one channel, and one that the peer needs
// first behind them. A device with a queue for each stream carries it.
TEST_F(NcclFaults, AMessageBehindTwoOfAnotherChannelHangsInOneQueueOfTheDevice) {
  for (const int64_t one_queue : {0, 1}) {
    FakeNccl::Set("one_queue", one_queue);
    NcclThreads job = Two();
    ASSERT_TRUE(job.ok());
    for (int message = 0; message < 2; ++message) {
      ASSERT_TRUE(job.transport(1).StartReceive(kForward, {job.memory[1]->Take(64)}).ok());
    }
    ASSERT_TRUE(job.transport(1).StartSend(kBackward, {job.memory[1]->Take(64)}).ok());
    const TransferId first =
        job.transport(0).StartReceive(kBackward, {job.memory[0]->Take(64)}).value();
    const absl::Status status = job.transport(0).Wait(first);
    EXPECT_EQ(status.ok(), one_queue == 0) << status;
  }
}

TEST_F(NcclFaults, AnErrorThatNcclMeetsItselfEndsEverything) {
  NcclThreads job = Two(nullptr, SoonSure);
  ASSERT_TRUE(job.ok());
  const TransferId receive =
      job.transport(1).StartReceive(kForward, {job.memory[1]->Take(64)}).value();
  EXPECT_EQ(job.transport(1).Test(receive).value(), false);
  FakeNccl::Set("fail_after", 1);
  const absl::Status status = job.transport(1).Wait(receive);
  EXPECT_EQ(status, absl::UnavailableError(
                        "worker 0 -> worker 1 (forward): NCCL: remote process exited or there was "
                        "a network error (6): injected by a test"));
  EXPECT_EQ(job.transport(1).StartSend(kBackward, {job.memory[1]->Take(64)}).ok(), true);
  EXPECT_EQ(FakeNccl::Get("aborts"), 4);
}

// NCCL sees the end of a socket before anybody has missed the worker behind it.
TEST_F(NcclFaults, AWorkerThatIsMissedALittleLaterIsTheCause) {
  const absl::Status reason = absl::UnavailableError("worker 0 was lost");
  std::atomic<int> looks = -1;  // counted from the error on
  NcclThreads job =
      Two([&] { return looks >= 0 && ++looks > 3 ? reason : absl::OkStatus(); }, nullptr);
  ASSERT_TRUE(job.ok());
  const TransferId receive =
      job.transport(1).StartReceive(kForward, {job.memory[1]->Take(64)}).value();
  looks = 0;
  FakeNccl::Set("fail_after", 1);
  EXPECT_EQ(job.transport(1).Wait(receive), reason);
  EXPECT_GT(looks, 3);
}

TEST_F(NcclFaults, AMessageThatNcclDoesNotTakeIsNamed) {
  NcclThreads job = Two(nullptr, SoonSure);
  ASSERT_TRUE(job.ok());
  FakeNccl::Set("fail_code", kNcclInternalError);
  FakeNccl::Set("fail_group", FakeNccl::Get("groups") + 1);
  const TransferId send = job.transport(0).StartSend(kForward, {job.memory[0]->Take(64)}).value();
  EXPECT_EQ(job.transport(0).Wait(send),
            absl::InternalError("worker 0 -> worker 1 (forward): message 0, 1 part of 64 bytes "
                                "(64): worker 0 -> worker 1 (forward): starting a send: NCCL: "
                                "internal error (3): injected by a test"));
}

// As NCCL over sockets does, which ends the receive of a larger message as "truncated".
TEST_F(NcclFaults, AnErrorThatOtherSizesExplainNamesBoth) {
  NcclThreads job = Two(nullptr, SoonSure);
  ASSERT_TRUE(job.ok());
  const TransferId send = job.transport(0).StartSend(kForward, {job.memory[0]->Take(128)}).value();
  FakeNccl::Set("fail_code", kNcclInternalError);
  FakeNccl::Set("fail_group", FakeNccl::Get("groups") + 1);
  const TransferId receive =
      job.transport(1).StartReceive(kForward, {job.memory[1]->Take(96)}).value();
  const absl::Status status = job.transport(1).Wait(receive);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("1 part of 128 bytes (128)"), HasSubstr("1 part of 96 bytes (96)")));
  EXPECT_EQ(job.transport(0).Wait(send).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(NcclFaults, AFailedWorkerEndsTheWaitsOfAllOthers) {
  std::atomic<bool> failed = false;
  const absl::Status reason = absl::UnavailableError("worker 7 has not been heard of");
  NcclThreads job = Two([&] { return failed ? reason : absl::OkStatus(); }, nullptr);
  ASSERT_TRUE(job.ok());
  const TransferId receive =
      job.transport(1).StartReceive(kForward, {job.memory[1]->Take(64)}).value();
  EXPECT_EQ(job.transport(1).Test(receive).value(), false);
  failed = true;
  EXPECT_EQ(job.transport(1).Wait(receive), reason);
}

// The sender's process unwinds while its message waits: nothing touches its memory afterwards.
TEST_F(NcclFaults, AWorkerThatLeavesTakesItsMessagesBack) {
  NcclThreads job = Two();
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(job.transport(0).StartSend(kForward, {job.memory[0]->Take(64)}).ok());
  EXPECT_EQ(FakeNccl::Get("waiting"), 1);
  job.made[0]->transport.reset();
  EXPECT_EQ(FakeNccl::Get("waiting"), 0);
}

TEST_F(NcclFaults, AWorkerThatDoesNotConnectIsNamed) {
  NcclThreads job = Two(nullptr, [](NcclTransportOptions& options) {
    options.connect_patience = kShort;
    // Worker 1 believes that it is alone.
    if (options.me == kSecond) options.channels.clear();
  });
  EXPECT_TRUE(job.made[1].ok());
  EXPECT_EQ(job.made[0].status(),
            absl::UnavailableError("connecting worker 0 -> worker 1 (forward) by NCCL: worker 1 "
                                   "did not come: not within 30.0 ms"));
}

TEST_F(NcclFaults, TwoRanksOnOneDeviceAreRefusedWithNcclsReason) {
  NcclThreads job = Two(nullptr, [](NcclTransportOptions& options) { options.device = 0; });
  for (const auto& made : job.made) {
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInternal) << made.status();
    EXPECT_THAT(std::string(made.status().message()),
                AllOf(StartsWith("connecting worker 0 -> worker 1 (forward) by NCCL"),
                      HasSubstr("Duplicate GPU detected")));
  }
}

TEST_F(NcclFaults, ADeviceWithoutRoomForNcclSaysSo) {
  FakeNccl::Set("memory", int64_t{1} << 40);
  NcclThreads job =
      Two(nullptr, [](NcclTransportOptions& options) { options.connect_patience = kShort; });
  for (const auto& made : job.made) {
    EXPECT_FALSE(made.ok());
    EXPECT_THAT(made.status().message(), HasSubstr("unhandled cuda error"));
  }
}

TEST_F(NcclFaults, WithoutNcclThereIsOneLine) {
  NcclThreads job = Two(
      nullptr, [](NcclTransportOptions& options) { options.library = "/no/such/libnccl.so.2"; });
  for (const auto& made : job.made) {
    EXPECT_EQ(made.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(made.status().message(), HasSubstr("no NCCL: /no/such/libnccl.so.2"));
  }
}

}  // namespace
}  // namespace siphon
