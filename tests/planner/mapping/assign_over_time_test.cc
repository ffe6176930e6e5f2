#include "planner/mapping/assign_over_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/mapping/swap_fabric.h"
#include "tests/planner/mapping/mapping_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kBytePerNano = 1'000'000'000;

std::vector<Bytes> Curve(const std::vector<int64_t>& bytes) {
  std::vector<Bytes> curve;
  for (const int64_t value : bytes) curve.emplace_back(value);
  return curve;
}

Stripe To(int lender, int64_t bytes) { return {DeviceId(lender), Bytes(bytes)}; }

// Each linked with all others by one wire of a byte a nanosecond.
Topology AllLinked(int devices) {
  Topology topology;
  topology.devices.resize(static_cast<size_t>(devices));
  for (int a = 0; a < devices; ++a) {
    for (int b = 0; b < a; ++b) Link(topology, a, b, 1, kBytePerNano);
  }
  return topology;
}

ParkingAssignment Assigned(const Topology& topology, const ParkingOverTime& curves,
                           int64_t granule = 1) {
  const auto assignment = AssignParkingOverTime(
      MakeSwapFabric(topology), IdentityMapping(static_cast<int>(curves.parked.size())), curves,
      Bytes(granule));
  EXPECT_TRUE(assignment.ok()) << assignment.status();
  return assignment.ok() ? *assignment : ParkingAssignment{};
}

TEST(AssignParkingOverTime, LendsLateWhatIsNeededEarly) {
  const ParkingAssignment assignment =
      Assigned(AllLinked(2), {.parked = {Curve({0, 0, 8, 10}), Curve({0, 0, 0, 0})},
                              .lendable = {Curve({0, 0, 0, 0}), Curve({0, 3, 9, 12})}});
  EXPECT_THAT(assignment.owners[0].stripes, ElementsAre(To(1, 10)));
  EXPECT_EQ(assignment.unparked, Bytes(0));
}

// At its tightest moment, when 4 of 10 bytes are parked, there are 2: half of all would fit.
TEST(AssignParkingOverTime, KeepsToTheTightestMoment) {
  const ParkingAssignment assignment = Assigned(
      AllLinked(2),
      {.parked = {Curve({4, 10}), Curve({0, 0})}, .lendable = {Curve({0, 0}), Curve({2, 12})}});
  EXPECT_THAT(assignment.owners[0].stripes, ElementsAre(To(1, 5)));
  EXPECT_EQ(assignment.unparked, Bytes(5));
}

TEST(AssignParkingOverTime, OwnersThatParkAtDifferentTimesUseTheSameBytes) {
  Topology topology = AllLinked(3);
  const ParkingOverTime curves{
      .parked = {Curve({10, 2, 0}), Curve({0, 8, 10}), Curve({0, 0, 0})},
      .lendable = {Curve({0, 0, 0}), Curve({0, 0, 0}), Curve({10, 10, 10})}};
  const ParkingAssignment assignment = Assigned(topology, curves);
  EXPECT_THAT(assignment.owners[0].stripes, ElementsAre(To(2, 10)));
  EXPECT_THAT(assignment.owners[1].stripes, ElementsAre(To(2, 10)));
  EXPECT_EQ(assignment.unparked, Bytes(0));
  // So do they on a device without a worker.
  topology.devices[2].memory = Bytes(10);
  const ParkingAssignment idle =
      Assigned(topology, {.parked = {curves.parked[0], curves.parked[1]},
                          .lendable = {curves.lendable[0], curves.lendable[1]}});
  EXPECT_EQ(idle.unparked, Bytes(0));
  EXPECT_THAT(idle.owners[1].stripes, ElementsAre(To(2, 10)));
}

TEST(AssignParkingOverTime, FullWorkersLendToEachOtherWhenTheyAreNot) {
  const ParkingAssignment assignment = Assigned(
      AllLinked(2),
      {.parked = {Curve({6, 0}), Curve({0, 6})}, .lendable = {Curve({0, 6}), Curve({6, 0})}});
  EXPECT_THAT(assignment.owners[0].stripes, ElementsAre(To(1, 6)));
  EXPECT_THAT(assignment.owners[1].stripes, ElementsAre(To(0, 6)));
}

TEST(AssignParkingOverTime, NothingParkedTakesNothing) {
  const ParkingAssignment assignment = Assigned(
      AllLinked(2), {.parked = {Curve({0}), Curve({0})}, .lendable = {Curve({5}), Curve({5})}});
  EXPECT_THAT(assignment.owners[0].stripes, IsEmpty());
  EXPECT_EQ(assignment.unparked, Bytes(0));
}

// Whether some lender would have to give more than it has at a moment, if each owner's bytes were
// with its lenders in the proportions of the assignment; a byte an owner for rounding.
bool IsOverLent(const ParkingOverTime& curves, const ParkingAssignment& assignment) {
  const size_t workers = curves.parked.size();
  for (size_t moment = 0; moment < curves.parked.front().size(); ++moment) {
    std::vector<double> lent(workers);
    for (size_t owner = 0; owner < workers; ++owner) {
      const std::vector<Bytes>& parked = curves.parked[owner];
      const Bytes fullest = *std::max_element(parked.begin(), parked.end());
      for (const Stripe& stripe : assignment.owners[owner].stripes) {
        lent[stripe.lender.value] += static_cast<double>(stripe.bytes.value) *
                                     static_cast<double>(parked[moment].value) /
                                     static_cast<double>(fullest.value);
      }
    }
    for (size_t lender = 0; lender < workers; ++lender) {
      if (lent[lender] > static_cast<double>(curves.lendable[lender][moment].value) + 1e-6) {
        return true;
      }
    }
  }
  return false;
}

TEST(AssignParkingOverTime, NeverLendsMoreThanThereIsAndNeverLosesAgainstTheLeastOfAllMoments) {
  std::mt19937 random(17);
  int gains = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int workers = 2 + static_cast<int>(random() % 4);
    const int moments = 1 + static_cast<int>(random() % 6);
    const Topology topology = RandomMesh(workers, 2, kBytePerNano, random);
    ParkingOverTime curves;
    ParkingDemand least;
    for (int worker = 0; worker < workers; ++worker) {
      std::vector<Bytes>& parked = curves.parked.emplace_back();
      std::vector<Bytes>& lendable = curves.lendable.emplace_back();
      const bool owner = random() % 2 == 0;
      for (int moment = 0; moment < moments; ++moment) {
        parked.emplace_back(owner && random() % 3 > 0 ? random() % 1000 : 0);
        lendable.emplace_back(random() % 3 > 0 ? random() % 1000 : 0);
      }
      least.workers.push_back({.parked = *std::max_element(parked.begin(), parked.end()),
                               .lendable = *std::min_element(lendable.begin(), lendable.end())});
    }
    const ParkingAssignment assignment = Assigned(topology, curves);
    const auto safe = AssignParking(topology, IdentityMapping(workers), least, Bytes(1));
    ASSERT_TRUE(safe.ok()) << safe.status();
    EXPECT_LE(assignment.unparked, safe->unparked) << "trial " << trial;
    if (assignment.unparked < safe->unparked) ++gains;
    EXPECT_FALSE(IsOverLent(curves, assignment)) << "trial " << trial;
    const SwapFabric fabric = MakeSwapFabric(topology);
    for (int owner = 0; owner < workers; ++owner) {
      for (const Stripe& stripe : assignment.owners[owner].stripes) {
        EXPECT_GT(fabric.rate[owner][stripe.lender.value], 0) << "over a link that is not there";
      }
    }
    if (moments == 1) {
      EXPECT_EQ(assignment, *safe) << "nothing changes over time";
    }
  }
  EXPECT_GT(gains, 50);
}

TEST(AssignParkingOverTime, RefusesCurvesThatDoNotBelongTogether) {
  const Topology topology = AllLinked(2);
  const auto refused = [&](const ParkingOverTime& curves) {
    return AssignParkingOverTime(MakeSwapFabric(topology), IdentityMapping(2), curves, Bytes(1))
        .status();
  };
  const std::vector<Bytes> two = Curve({1, 2});
  EXPECT_THAT(refused({.parked = {two, two}, .lendable = {two}}).message(),
              testing::HasSubstr("2 owners and 1 lenders"));
  EXPECT_FALSE(refused({.parked = {two, two}, .lendable = {two, Curve({1})}}).ok());
  EXPECT_FALSE(refused({}).ok());
}

}  // namespace
}  // namespace siphon
