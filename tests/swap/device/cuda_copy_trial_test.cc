// Timed copies, in the fake's own time: figures are exact there. On a device only what holds for
// any rates is looked at.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "swap/device/copy_trial.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/swap/device/cuda_rig.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr std::optional<int> kHost = std::nullopt;

CopyTrial TrialOf(std::vector<CopyPath> paths) {
  return {.paths = std::move(paths), .bytes = Bytes(1 << 20), .chunk = Bytes(1 << 16), .rounds = 3};
}

class CudaCopyTrial : public testing::Test {
 protected:
  void SetUp() override {
    if (!FakeCuda::IsThere()) GTEST_SKIP() << "skipped, because a device has rates of its own";
    FakeCuda::Reset();
    FakeCuda::Set("devices", 4);
  }
  void TearDown() override {
    if (!FakeCuda::IsThere()) return;
    FakeCuda::SetLinks("");
    FakeCuda::Reset();
  }
  // GB/s, to three digits.
  static std::vector<double> Rates(const std::vector<CopyPath>& paths) {
    const auto figures = TheCudaModule().RunTrial(TrialOf(paths));
    EXPECT_TRUE(figures.ok()) << figures.status();
    std::vector<double> rates;
    for (const CopyFigure& figure : figures.value_or(std::vector<CopyFigure>())) {
      rates.push_back(static_cast<double>(RateOf(figure).value / 10'000'000) / 100);
    }
    return rates;
  }
};

// Of paths that take turns, the first is ahead by a chunk of 16 when it is through.
testing::Matcher<double> About(double rate) { return testing::DoubleNear(rate, 0.05 * rate); }

TEST_F(CudaCopyTrial, TimesEachDirectionAlone) {
  FakeCuda::SetLinks("0>1=24e9 1>0=48e9 0>host=12e9 host>0=11e9");
  EXPECT_THAT(Rates({{0, 1, 0}}), testing::ElementsAre(About(24)));
  EXPECT_THAT(Rates({{1, 0, 0}}), testing::ElementsAre(About(48)));  // a pull
  EXPECT_THAT(Rates({{0, kHost, 0}}), testing::ElementsAre(About(12)));
  EXPECT_THAT(Rates({{kHost, 0, 0}}), testing::ElementsAre(About(11)));
}

TEST_F(CudaCopyTrial, SeesEnginesThatServeOnePeerEachAndOneForAll) {
  FakeCuda::SetLinks("0>1=24e9 0>2=24e9 0>3=48e9");
  EXPECT_THAT(Rates({{0, 1, 0}, {0, 2, 0}, {0, 3, 0}}),
              testing::ElementsAre(About(24), About(24), About(48)));
  FakeCuda::SetLinks("engine=300e9 0>1=300e9,engine 0>2=300e9,engine 0>3=300e9,engine");
  EXPECT_THAT(Rates({{0, 1, 0}, {0, 2, 0}, {0, 3, 0}}),
              testing::ElementsAre(About(100), About(100), About(100)));
}

TEST_F(CudaCopyTrial, SeesUplinksSharedByDevicesAndDirections) {
  FakeCuda::SetLinks("up=12e9 0>host=12e9,up 1>host=12e9,up");
  EXPECT_THAT(Rates({{0, kHost, 0}, {1, kHost, 1}}), testing::ElementsAre(About(6), About(6)));
  FakeCuda::SetLinks("duplex=38e9 0>host=26e9,duplex host>0=26e9,duplex");
  EXPECT_THAT(Rates({{0, kHost, 0}, {kHost, 0, 0}}), testing::ElementsAre(About(19), About(19)));
}

TEST_F(CudaCopyTrial, GivesBackAllThatItTook) {
  const int64_t streams = FakeCuda::Get("streams");
  const int64_t events = FakeCuda::Get("events");
  Rates({{0, 1, 0}, {0, kHost, 0}});
  EXPECT_EQ(FakeCuda::Get("allocations"), 0);
  EXPECT_LE(FakeCuda::Get("streams"), streams + 1);  // a default stream stays
  EXPECT_EQ(FakeCuda::Get("events"), events);
}

TEST_F(CudaCopyTrial, SaysWhichCopyFailed) {
  FakeCuda::Set("fail_least", 1 << 16);
  FakeCuda::Set("fail_copy", 3);
  const auto failed = TheCudaModule().RunTrial(TrialOf({{0, 1, 0}}));
  EXPECT_THAT(std::string(failed.status().message()),
              HasSubstr("a copy from device 0 to device 1 by device 0"));
}

TEST(CudaTrials, TimeCopiesToTheHostOnAnyRuntime) {
  const auto figures = TheCudaModule().RunTrial(TrialOf({{0, kHost, 0}, {kHost, 0, 0}}));
  ASSERT_TRUE(figures.ok()) << figures.status();
  ASSERT_EQ(figures->size(), 2u);
  const auto uneven = TheCudaModule().RunTrial(
      {.paths = {{0, kHost, 0}}, .bytes = Bytes(1000), .chunk = Bytes(300)});
  EXPECT_EQ(uneven.status().message(), "1000 bytes are no whole chunks of 300");
  const auto reaches = TheCudaModule().Reaches(0, 0);
  ASSERT_TRUE(reaches.ok()) << reaches.status();
  EXPECT_TRUE(*reaches);
}

}  // namespace
}  // namespace siphon
