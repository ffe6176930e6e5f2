#include "planner/mapping/parking_demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "tests/planner/mapping/mapping_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

ParkingNeed Parks(int64_t bytes) { return {Bytes(bytes), Bytes(0)}; }
ParkingNeed Lends(int64_t bytes) { return {Bytes(0), Bytes(bytes)}; }

TEST(ParkingDemand, AtPeaksIsWhatIsAboveAndBelowTheCapacity) {
  const ParkingDemand demand = PeakParkingDemand({Bytes(130), Bytes(100), Bytes(30), Bytes(500)},
                                                 {Bytes(100), Bytes(100), Bytes(100), Bytes(0)});
  EXPECT_THAT(demand.workers, ElementsAre(Parks(30), Lends(0), Lends(70), Lends(0)));
}

// Worker 0 is above 100 in [10, 30) and [40, 50); worker 1 is full before and between.
TEST(ParkingDemand, OverTimeLendsWhatIsFreeWhileAnythingIsParked) {
  const HeldCurve owner = {{Nanos(0), Bytes(20)},  {Nanos(10), Bytes(120)}, {Nanos(20), Bytes(150)},
                           {Nanos(30), Bytes(90)}, {Nanos(40), Bytes(110)}, {Nanos(50), Bytes(0)}};
  const HeldCurve lender = {{Nanos(0), Bytes(95)},
                            {Nanos(8), Bytes(10)},
                            {Nanos(25), Bytes(40)},
                            {Nanos(31), Bytes(99)},
                            {Nanos(39), Bytes(30)}};
  const ParkingDemand demand = ParkingDemandOverTime({owner, lender}, {Bytes(100), Bytes(100)});
  EXPECT_THAT(demand.workers, ElementsAre(Parks(50), Lends(60)));
}

TEST(ParkingDemand, OverTimeOfWorkersThatFitIsAllTheirMemory) {
  const ParkingDemand demand =
      ParkingDemandOverTime({{{Nanos(0), Bytes(80)}}, {}}, {Bytes(100), Bytes(50)});
  EXPECT_THAT(demand.workers, ElementsAre(Lends(100), Lends(50)));
}

TEST(ParkingDemand, OverTimeNeverLendsLessThanAtPeaks) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<HeldCurve> curves(1 + random() % 5);
    std::vector<Bytes> peaks;
    for (HeldCurve& curve : curves) {
      Bytes& peak = peaks.emplace_back();
      for (int point = 0; point < 6; ++point) {
        curve.push_back(
            {Nanos(10 * point + static_cast<int>(random() % 10)), Bytes(random() % 200)});
        peak = std::max(peak, curve.back().bytes);
      }
    }
    const std::vector<Bytes> capacity(curves.size(), Bytes(100));
    const ParkingDemand at_peaks = PeakParkingDemand(peaks, capacity);
    const ParkingDemand over_time = ParkingDemandOverTime(curves, capacity);
    for (size_t worker = 0; worker < curves.size(); ++worker) {
      EXPECT_EQ(over_time.workers[worker].parked, at_peaks.workers[worker].parked);
      EXPECT_GE(over_time.workers[worker].lendable, at_peaks.workers[worker].lendable);
    }
  }
}

TEST(ParkingDemand, IsRefusedWithTheWorkerAndItsBytes) {
  const Topology topology = UniformTopology(2, BytesPerSecond(1), Nanos(0));
  EXPECT_EQ(CheckParkingDemand({{Parks(1), Lends(2), Lends(3)}}, topology),
            absl::InvalidArgumentError("3 workers need as many devices; the topology has 2"));
  EXPECT_EQ(CheckParkingDemand({{Parks(1), Lends(-2)}}, topology),
            absl::InvalidArgumentError("worker 1 parks 0 bytes and lends -2: both must be 0 or "
                                       "more, all together at most 2^60"));
  EXPECT_FALSE(CheckParkingDemand({{Parks(int64_t{1} << 60), Lends(1)}}, topology).ok());
}

TEST(CheckMapping, SaysWhichWorkersShareADevice) {
  const Topology topology = UniformTopology(3, BytesPerSecond(1), Nanos(0));
  EXPECT_TRUE(CheckMapping(MapOf({2, 0}), 2, topology).ok());
  EXPECT_EQ(CheckMapping(MapOf({2, 0}), 3, topology),
            absl::InvalidArgumentError("the map has 2 entries for 3 workers"));
  EXPECT_EQ(CheckMapping(MapOf({2, 3}), 2, topology),
            absl::InvalidArgumentError("worker 1 is mapped to device 3, but devices are 0 to 2"));
  EXPECT_EQ(CheckMapping(MapOf({2, 0, 2}), 3, topology),
            absl::InvalidArgumentError("workers 0 and 2 are both mapped to device 2"));
}

}  // namespace
}  // namespace siphon
