#include "tests/gpu/activity/copy_overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace siphon {
namespace {

using Kind = DeviceActivity::Kind;
using Engine = DeviceActivity::Engine;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kWorkStream = 7;
constexpr int kCopyStream = 20;

DeviceActivity Kernel(int64_t start, int64_t end, int device = 0) {
  return {.kind = Kind::kKernel,
          .device = device,
          .channel = 1,
          .stream = kWorkStream,
          .start = Nanos(start),
          .end = Nanos(end)};
}
DeviceActivity Copy(Kind kind, int channel, int64_t start, int64_t end,
                    Bytes bytes = Bytes(8 << 20)) {
  return {.kind = kind,
          .engine = Engine::kCopy,
          .channel = channel,
          .stream = kCopyStream,
          .bytes = bytes,
          .start = Nanos(start),
          .end = Nanos(end)};
}

TEST(DeviceActivity, IsALineAndBack) {
  DeviceActivity activity = Copy(Kind::kToPeer, 5, 1000, 2000);
  activity.device = 3;
  EXPECT_EQ(LineOf(activity), "to_peer copy_engine 3 5 20 8388608 1000 2000");
  for (const Kind kind : {Kind::kToDevice, Kind::kToHost, Kind::kWithinDevice, Kind::kToPeer,
                          Kind::kOtherCopy, Kind::kKernel}) {
    for (const Engine engine : {Engine::kCopy, Engine::kCompute, Engine::kOther}) {
      activity.kind = kind;
      activity.engine = engine;
      EXPECT_EQ(*ParseActivity(LineOf(activity)), activity);
    }
  }
}

TEST(DeviceActivity, IsRefusedWhereALineIsNone) {
  const auto problem = [](const std::string& line) {
    return std::string(ParseActivity(line).status().message());
  };
  EXPECT_EQ(problem("kernel compute 0 1 7 0 5"),
            "'kernel compute 0 1 7 0 5': 8 words are expected");
  EXPECT_THAT(problem("kernel gpu 0 1 7 0 5 6"), HasSubstr("unknown kind or engine"));
  EXPECT_THAT(problem("kernel compute 0 1 x 0 5 6"), HasSubstr("numbers are expected"));
  EXPECT_THAT(problem("kernel compute 0 1 7 0 6 5"), HasSubstr("it ends before it starts"));
}

//            0    100   200   300   400
// kernels    [=========]    [====]
// out            [=======]                 channel 4, [50, 170)
//                      [======]            channel 4, [150, 260)
// in                              [===]    channel 5, [310, 390)
TEST(SummariseCopies, SaysHowLongCopiesWereBesideKernels) {
  const std::vector<DeviceActivity> activities = {
      Copy(Kind::kToDevice, 5, 310, 390),
      Copy(Kind::kToHost, 4, 50, 170),
      Kernel(0, 100),
      Kernel(100, 150),
      Kernel(200, 300),
      Copy(Kind::kToHost, 4, 150, 260, Bytes(1 << 20)),
      Kernel(300, 400, /*device=*/1),
  };
  EXPECT_THAT(SummariseCopies(activities),
              ElementsAre(CopySummary{.kind = Kind::kToDevice,
                                      .engine = Engine::kCopy,
                                      .channel = 5,
                                      .copies = 1,
                                      .bytes = Bytes(8 << 20),
                                      .busy = Nanos(80),
                                      .beside_kernels = Nanos(0),
                                      .largest = Bytes(8 << 20)},
                          CopySummary{.kind = Kind::kToHost,
                                      .engine = Engine::kCopy,
                                      .channel = 4,
                                      .copies = 2,
                                      .bytes = Bytes(9 << 20),
                                      .busy = Nanos(210),
                                      .beside_kernels = Nanos(100 + 60),
                                      .largest = Bytes(8 << 20)}));
}

TEST(SummariseCopies, LeavesOutWhatStandsBetweenKernels) {
  DeviceActivity between = Copy(Kind::kToDevice, 5, 150, 190);
  between.stream = kWorkStream;
  EXPECT_THAT(SummariseCopies({Kernel(0, 150), between, Kernel(190, 200)}), ElementsAre());
}

TEST(CheckCopies, WantsCopyEnginesBesideKernels) {
  const auto problem = [](const std::vector<DeviceActivity>& activities) {
    return std::string(CheckCopies(SummariseCopies(activities)).message());
  };
  const DeviceActivity out = Copy(Kind::kToHost, 4, 0, 100);
  EXPECT_EQ(problem({Kernel(0, 50), out}), "");
  EXPECT_EQ(problem({Kernel(0, 49), out}),
            "to host, device 0, channel 4: 49 % of its time beside kernels, at least 50 % are "
            "expected");
  DeviceActivity by_compute = out;
  by_compute.engine = Engine::kCompute;
  EXPECT_EQ(problem({Kernel(0, 100), by_compute}), "to host, device 0, channel 4: by compute");
  // Small ones, and copies within a device, may go any way.
  DeviceActivity small = by_compute;
  small.bytes = Bytes(64 << 10);
  DeviceActivity within = by_compute;
  within.kind = Kind::kWithinDevice;
  EXPECT_EQ(problem({Kernel(0, 100), small, within}), "no tensor left a device or came back");
}

TEST(TableOf, HasALineForEachWay) {
  EXPECT_EQ(
      TableOf(SummariseCopies({Kernel(0, 1'000'000), Copy(Kind::kToHost, 4, 500'000, 2'000'000)})),
      "| copies | device | channel | by | number | bytes | largest | time | GB/s | beside kernels "
      "|\n"
      "|---|---|---|---|---|---|---|---|---|---|\n"
      "| to host | 0 | 4 | copy engine | 1 | 8.00 MiB | 8.00 MiB | 1.500 ms | 5.6 | 33 % |\n");
}

}  // namespace
}  // namespace siphon
