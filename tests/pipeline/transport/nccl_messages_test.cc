// What the transport over NCCL does beside what every transport must do.

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/transport/all_gather.h"
#include "tests/pipeline/transport/nccl_threads.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/support/fake_nccl/fake_nccl_control.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr WorkerId kFirst{0}, kSecond{1};
constexpr Channel kForward{kFirst, kSecond, Lane::kForward};
constexpr Channel kControl{kFirst, kSecond, Lane::kControl};

class NcclMessages : public testing::Test {
 protected:
  void SetUp() override {
    FakeCuda::Reset();
    FakeNccl::Reset();
  }
  void TearDown() override {
    EXPECT_EQ(FakeNccl::Get("communicators"), 0);
    EXPECT_EQ(FakeNccl::Get("waiting"), 0);
  }

  static NcclThreads Two(const std::function<void(NcclTransportOptions&)>& change = nullptr) {
    NcclThreads job = MakeNcclThreads(MakeInProcessJob(2, nullptr), nullptr, change);
    for (const auto& made : job.made) EXPECT_TRUE(made.ok()) << made.status();
    return job;
  }
  static std::vector<std::byte> Read(const DeviceMemory& memory, MutablePart part) {
    std::vector<std::byte> bytes(part.size());
    memory.Copy(bytes.data(), part.data(), part.size());
    return bytes;
  }
};

// Each channel's first byte is sent when it is connected, so that no step pays for that.
TEST_F(NcclMessages, ConnectEveryChannelBeforeTheFirst) {
  const NcclThreads job = Two();
  EXPECT_EQ(FakeNccl::Get("communicators"), 2 * 4);  // both lanes both ways, both ends
  EXPECT_EQ(FakeNccl::Get("sends"), 4);
  EXPECT_EQ(FakeNccl::Get("receives"), 4);
}

TEST_F(NcclMessages, SayHowMuchOfTheDeviceTheyTook) {
  FakeNccl::Set("memory", 3 << 20);
  const NcclThreads job = Two();
  for (const auto& made : job.made) {
    EXPECT_EQ(made->device_memory, Bytes(4 * (3 << 20)));
    EXPECT_GT(made->device_free, Bytes(0));
  }
}

TEST_F(NcclMessages, LeaveAllPartsInOneGroup) {
  NcclThreads job = Two();
  const int64_t before = FakeNccl::Get("groups");
  std::vector<ConstPart> parts;
  std::vector<MutablePart> room;
  for (const size_t size : {64, 0, 1000, 3}) {
    parts.push_back(job.memory[0]->Take(size));
    room.push_back(job.memory[1]->Take(size));
  }
  const TransferId send = job.transport(0).StartSend(kForward, parts).value();
  const TransferId receive = job.transport(1).StartReceive(kForward, room).value();
  EXPECT_TRUE(job.transport(0).Wait(send).ok());
  EXPECT_TRUE(job.transport(1).Wait(receive).ok());
  EXPECT_EQ(FakeNccl::Get("groups"), before + 2);
}

TEST_F(NcclMessages, AreNotDoneAtTheSenderBeforeTheirReceiveIsStarted) {
  NcclThreads job = Two();
  const absl::Span<std::byte> sent = job.memory[0]->Take(64);
  const TransferId send = job.transport(0).StartSend(kForward, {sent}).value();
  EXPECT_EQ(job.transport(0).Test(send).value(), false);
  const TransferId receive =
      job.transport(1).StartReceive(kForward, {job.memory[1]->Take(64)}).value();
  EXPECT_TRUE(job.transport(1).Wait(receive).ok());
  EXPECT_TRUE(job.transport(0).Wait(send).ok());
}

// A gate on a stream: what comes behind it waits for Open.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) : opened_(open_.get_future().share()) {
    cudaLaunchHostFunc(
        stream, [](void* gate) { static_cast<Gate*>(gate)->opened_.wait(); }, this);
  }
  void Open() { open_.set_value(); }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_;
};

// The sender's computation has not written the message yet when the send is started; the
// receiver's has not yet read what was in the memory before.
TEST_F(NcclMessages, BeginBehindWhatTheWorkerComputesAtBothEnds) {
  cudaStream_t streams[2] = {};
  FakeCuda::Set("devices", 2);
  for (int worker = 0; worker < 2; ++worker) {
    ASSERT_EQ(cudaSetDevice(worker), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&streams[worker], cudaStreamNonBlocking), cudaSuccess);
  }
  {
    NcclThreads job =
        Two([&](NcclTransportOptions& options) { options.work_stream = streams[options.device]; });
    const absl::Span<std::byte> sent = job.memory[0]->Take(1000);
    const absl::Span<std::byte> room = job.memory[1]->Take(1000);
    const absl::Span<std::byte> kept = job.memory[1]->Take(1000);
    Gate writing(streams[0]);
    ASSERT_EQ(cudaMemsetAsync(sent.data(), 7, sent.size(), streams[0]), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(room.data(), 5, room.size(), streams[1]), cudaSuccess);
    Gate reading(streams[1]);
    ASSERT_EQ(cudaMemcpyAsync(kept.data(), room.data(), room.size(), cudaMemcpyDefault, streams[1]),
              cudaSuccess);
    const TransferId send = job.transport(0).StartSend(kForward, {sent}).value();
    const TransferId receive = job.transport(1).StartReceive(kForward, {room}).value();
    writing.Open();
    ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
    EXPECT_EQ(job.transport(0).Test(send).value(), false);
    EXPECT_EQ(job.transport(1).Test(receive).value(), false);
    reading.Open();
    EXPECT_TRUE(job.transport(1).Wait(receive).ok());
    EXPECT_TRUE(job.transport(0).Wait(send).ok());
    EXPECT_EQ(Read(*job.memory[1], room), std::vector<std::byte>(1000, std::byte{7}));
    EXPECT_EQ(Read(*job.memory[1], kept), std::vector<std::byte>(1000, std::byte{5}));
  }
  for (const cudaStream_t stream : streams) ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// Gradients that stages share are on devices, losses are on the host; both take the control lane.
TEST_F(NcclMessages, OfTheControlLaneGoByWhereTheirMemoryIs) {
  NcclThreads job =
      Two([](NcclTransportOptions& options) { options.channels.push_back(kControl); });
  const int64_t before = FakeNccl::Get("sends");
  const std::vector<std::byte> loss(8, std::byte{3});
  std::vector<std::byte> got(8);
  const absl::Span<std::byte> gradient = job.memory[0]->Take(500);
  const absl::Span<std::byte> room = job.memory[1]->Take(500);
  const std::vector<std::byte> written(500, std::byte{9});
  job.memory[0]->Copy(gradient.data(), written.data(), written.size());
  const TransferId on_device = job.transport(0).StartSend(kControl, {gradient}).value();
  const TransferId on_host = job.transport(0).StartSend(kControl, {loss}).value();
  const TransferId to_device = job.transport(1).StartReceive(kControl, {room}).value();
  const TransferId to_host = job.transport(1).StartReceive(kControl, {MutablePart(got)}).value();
  EXPECT_TRUE(job.transport(1).Wait(to_host).ok());
  EXPECT_TRUE(job.transport(0).Wait(on_host).ok());
  EXPECT_TRUE(job.transport(1).Wait(to_device).ok());
  EXPECT_TRUE(job.transport(0).Wait(on_device).ok());
  EXPECT_EQ(got, loss);
  EXPECT_EQ(Read(*job.memory[1], room), written);
  EXPECT_EQ(FakeNccl::Get("sends"), before + 1);
}

TEST_F(NcclMessages, AreRefusedWhereNcclCannotTakeThem) {
  NcclThreads job = Two();
  const std::vector<std::byte> on_host(64);
  const auto host = job.transport(0).StartSend(kForward, {on_host});
  EXPECT_EQ(host.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(host.status().message(),
              HasSubstr("worker 0 -> worker 1 (forward): NCCL moves memory of devices"));
  const auto control = job.transport(0).StartSend(kControl, {job.memory[0]->Take(64)});
  EXPECT_EQ(control.status(),
            absl::InvalidArgumentError("no communicator was made for worker 0 -> worker 1 "
                                       "(control); worker 0 has 4"));
}

// One message more, or one less, than the other end: the sizes are those of other messages.
TEST_F(NcclMessages, OfOtherSizesAreNamedAtTheSenderToo) {
  NcclThreads job = Two();
  const TransferId send = job.transport(0).StartSend(kForward, {job.memory[0]->Take(96)}).value();
  const TransferId receive =
      job.transport(1).StartReceive(kForward, {job.memory[1]->Take(64)}).value();
  EXPECT_EQ(job.transport(1).Wait(receive),
            absl::FailedPreconditionError("worker 0 -> worker 1 (forward): the message has 1 part "
                                          "of 96 bytes (96), the receiver expects 1 part of 64 "
                                          "bytes (64)"));
  EXPECT_EQ(job.transport(0).Wait(send),
            absl::FailedPreconditionError("worker 0 -> worker 1 (forward): the receiver expected "
                                          "message 0 to have 1 part of 64 bytes"));
  // Nothing goes any more, on other channels neither: one abort is all communicators'.
  const TransferId next = job.transport(0).StartSend(kForward, {job.memory[0]->Take(64)}).value();
  EXPECT_EQ(job.transport(0).Wait(next).code(), absl::StatusCode::kFailedPrecondition);
  const Channel backward{kSecond, kFirst, Lane::kBackward};
  const TransferId other =
      job.transport(0).StartReceive(backward, {job.memory[0]->Take(64)}).value();
  EXPECT_EQ(job.transport(0).Wait(other).code(), absl::StatusCode::kFailedPrecondition);
}

// Nothing moves on the device: only the other end's word says that it is there.
TEST_F(NcclMessages, WithoutBytesAreDoneWhenTheirSenderHasStartedThem) {
  NcclThreads job = Two();
  const TransferId receive = job.transport(1).StartReceive(kForward, {}).value();
  EXPECT_EQ(job.transport(1).Test(receive).value(), false);
  const TransferId send = job.transport(0).StartSend(kForward, {}).value();
  EXPECT_EQ(job.transport(0).Test(send).value(), true);
  EXPECT_EQ(job.transport(1).Test(receive).value(), true);
  // Nor is one with bytes taken for one without.
  const TransferId more = job.transport(0).StartSend(kForward, {job.memory[0]->Take(64)}).value();
  const TransferId none = job.transport(1).StartReceive(kForward, {}).value();
  EXPECT_EQ(job.transport(1).Wait(none).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(job.transport(0).Wait(more).code(), absl::StatusCode::kFailedPrecondition);
}

// A receive that is started after its message was announced with other sizes reaches no stream.
TEST_F(NcclMessages, OfOtherSizesAreNotBegunWhenThatIsKnown) {
  NcclThreads job = Two();
  ASSERT_TRUE(job.transport(0).StartSend(kForward, {job.memory[0]->Take(96)}).ok());
  std::vector<std::byte> nothing(1);
  // Makes progress at the receiver.
  EXPECT_EQ(job.transport(1).Test(TransferId{}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const int64_t before = FakeNccl::Get("groups");
  const TransferId receive =
      job.transport(1).StartReceive(kForward, {job.memory[1]->Take(64)}).value();
  EXPECT_EQ(job.transport(1).Test(receive).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FakeNccl::Get("groups"), before);
}

}  // namespace
}  // namespace siphon
