// Groups that go to other places in the middle of a run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/swap/engine_with_fakes.h"

namespace siphon {
namespace {

using testing::HasSubstr;

// Group 0 from its two lenders to the host, behind group 1, while one of its slots is in use.
TEST_F(SwapEngineWithFakes, CarriesOverWhatIsAwayToItsNewPlace) {
  SendAway(Group(0, 2), 0, 128);
  SendAway(Group(1, 2), 200, 64);
  WorkerParking parking;
  parking.slots[{StageId(0), GroupId(0)}] = {{{{kHost, Bytes(64), Bytes(128)}}},
                                             {{{kHost, Bytes(192), Bytes(128)}}}};
  parking.slots[{StageId(0), GroupId(1)}] = parking_.slots.at({StageId(0), GroupId(1)});
  parking.bytes = {{kHost, Bytes(320)}};
  ParkingLot lot(parking);
  lot.At(kHost) = lot_.At(kHost);  // what was there stays
  lot.At(kHost).resize(320);
  backend_.hold = false;
  ASSERT_TRUE(engine_->Rehouse(parking, lot.Memory()).ok());
  backend_.hold = true;
  lot_.At(kLender).assign(lot_.At(kLender).size(), std::byte{0});
  lot_.At(kOther).assign(lot_.At(kOther).size(), std::byte{0});
  EXPECT_EQ(engine_->Table(),
            "stage 0, group 0, microbatch 2: away, 1 tensors, 128 of 128 bytes: host [64, 192)\n"
            "stage 0, group 1, microbatch 2: away, 1 tensors, 64 of 64 bytes: host [0, 64)\n");
  SendAway(Group(0, 3), 300, 128);  // the slot that was free
  const std::vector<std::byte> before = tensors_;
  tensors_.assign(tensors_.size(), std::byte{0});
  HaveBack(Group(0, 2), 0, 128);
  HaveBack(Group(1, 2), 200, 64);
  HaveBack(Group(0, 3), 300, 128);
  for (const auto& [begin, end] : {std::pair(0, 128), {200, 264}, {300, 428}}) {
    EXPECT_TRUE(std::equal(before.begin() + begin, before.begin() + end, tensors_.begin() + begin));
  }
  EXPECT_TRUE(engine_->CheckNothingAway().ok());
}

// Training state keeps its slot while it is in, and what is there: it goes along.
TEST_F(SwapEngineWithFakes, CarriesOverTheCopyOfWhatBelongsToNoMicrobatch) {
  const ParkedGroup state{StageId(0), GroupId(1), kNoMicrobatch};
  SendAway(state, 200, 64);
  HaveBack(state, 200, 64);
  WorkerParking parking = parking_;
  parking.slots[{StageId(0), GroupId(1)}] = {{{{kOther, Bytes(128), Bytes(64)}}}};
  parking.bytes = {{kLender, Bytes(256)}, {kOther, Bytes(192)}};
  ParkingLot lot(parking);
  backend_.hold = false;
  ASSERT_TRUE(engine_->Rehouse(parking, lot.Memory()).ok());
  backend_.hold = true;
  lot_.At(kHost).assign(64, std::byte{0});
  ASSERT_TRUE(engine_->Drop(state).ok());
  const std::vector<std::byte> before = tensors_;
  tensors_.assign(tensors_.size(), std::byte{0});
  HaveBack(state, 200, 64);
  EXPECT_TRUE(std::equal(before.begin() + 200, before.begin() + 264, tensors_.begin() + 200));
  EXPECT_TRUE(engine_->CheckNothingAway().ok());
}

TEST_F(SwapEngineWithFakes, RefusesNewPlacesForWhatIsUnderWayOrWouldHaveNone) {
  WorkerParking without = parking_;
  without.slots.erase({StageId(0), GroupId(0)});
  without.bytes = {{kHost, Bytes(64)}};
  ASSERT_TRUE(Out(Group(0, 2), 0, 128).ok());
  EXPECT_THAT(std::string(engine_->Rehouse(without, lot_.Memory()).message()),
              HasSubstr("stage 0, group 0, microbatch 2 cannot go to another place: it is on its "
                        "way out"));
  backend_.Complete(0);
  ASSERT_TRUE(engine_->WaitOut(Group(0, 2)).ok());
  EXPECT_THAT(std::string(engine_->Rehouse(without, lot_.Memory()).message()),
              HasSubstr("cannot lose its place: it is away"));
  HaveBack(Group(0, 2), 0, 128);
  ASSERT_TRUE(engine_->Rehouse(without, lot_.Memory()).ok());
  EXPECT_THAT(std::string(Out(Group(0, 3), 0, 128).message()),
              HasSubstr("the plan does not park this group"));
  EXPECT_TRUE(engine_->CheckNothingAway().ok());
}

}  // namespace
}  // namespace siphon
