#include "launch/run/seat/link_watch.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

constexpr ParkingPlace kLender{Placement::kPeerSwap, DeviceId(3)};
constexpr ParkingPlace kHost{Placement::kHostSwap, DeviceId(0)};
constexpr Nanos kStep{10'000};

// 1,000 bytes in two copies, planned to take 1,100 ns.
LinkState Took(const ParkingPlace& place, int64_t time) {
  return {place, {BytesPerSecond(1'000'000'000), Nanos(50)}, {2, Bytes(1000), Nanos(time)}};
}

TEST(LinkWatch, NamesALinkOnceAfterSomeSlowStepsInARow) {
  LinkWatch watch;
  EXPECT_FALSE(watch.Note({Took(kLender, 6'600)}, kStep).has_value());
  EXPECT_FALSE(watch.Note({Took(kLender, 6'600)}, kStep).has_value());
  EXPECT_FALSE(watch.Note({Took(kLender, 5'500)}, kStep).has_value()) << "five times is not more";
  EXPECT_FALSE(watch.Note({Took(kLender, 6'600)}, kStep).has_value());
  EXPECT_FALSE(watch.Note({Took(kLender, 7'700)}, kStep).has_value());
  const auto slow = watch.Note({Took(kHost, 1'100), Took(kLender, 8'800)}, kStep);
  ASSERT_TRUE(slow.has_value());
  EXPECT_EQ(slow->place, kLender);
  EXPECT_DOUBLE_EQ(slow->factor, 7);
  for (int step = 0; step < 5; ++step) {
    EXPECT_FALSE(watch.Note({Took(kLender, 8'800)}, kStep).has_value());
  }
}

TEST(LinkWatch, LooksAtWhatIsPlannedAndMatters) {
  LinkWatch watch;
  LinkState unknown = Took(kHost, 9'900);
  unknown.planned.rate = BytesPerSecond(0);
  for (int step = 0; step < 10; ++step) {
    // Nothing is known of the one; the other takes 6,600 ns of 40,000.
    EXPECT_FALSE(watch.Note({unknown, Took(kLender, 6'600)}, kStep * 4).has_value());
  }
}

TEST(LinkWatch, NamesTheSlowestFirst) {
  LinkWatch watch;
  for (int step = 1; step < LinkWatch::kSteps; ++step) {
    EXPECT_FALSE(watch.Note({Took(kLender, 6'600), Took(kHost, 8'800)}, kStep).has_value());
  }
  EXPECT_EQ(watch.Note({Took(kLender, 6'600), Took(kHost, 8'800)}, kStep)->place, kHost);
  EXPECT_EQ(watch.Note({Took(kLender, 6'600), Took(kHost, 8'800)}, kStep)->place, kLender);
}

}  // namespace
}  // namespace siphon
