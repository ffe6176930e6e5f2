#include "swap/swap_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/swap/engine_with_fakes.h"

namespace siphon {
namespace {

using testing::HasSubstr;

// The slot still has what left, so that it can come back again; until a newer copy leaves.
TEST_F(SwapEngineWithFakes, GroupsWithoutMicrobatchKeepTheirSlot) {
  const ParkedGroup state{StageId(0), GroupId(0), kNoMicrobatch};
  EXPECT_THAT(engine_->Drop(state).message(), HasSubstr("cannot be dropped: it is nowhere else"));
  SendAway(state, 0, 100);
  EXPECT_THAT(engine_->Drop(state).message(), HasSubstr("cannot be dropped: it is away"));
  HaveBack(state, 200, 100);
  EXPECT_FALSE(engine_->IsAway(state));
  EXPECT_TRUE(engine_->CheckNothingAway().ok());
  ASSERT_TRUE(engine_->Drop(state).ok());
  EXPECT_TRUE(engine_->IsAway(state));
  EXPECT_TRUE(engine_->CheckNothingAway().ok()) << "of a microbatch";
  HaveBack(state, 400, 100);
  EXPECT_TRUE(std::equal(&tensors_[0], &tensors_[100], &tensors_[400]));
  const size_t copies = backend_.copies.size();
  tensors_[400] = std::byte{0};
  SendAway(state, 400, 100);
  HaveBack(state, 600, 100);
  EXPECT_EQ(backend_.copies.size(), copies + 2);
  EXPECT_TRUE(std::equal(&tensors_[400], &tensors_[500], &tensors_[600]));
  // The other slot is there for a microbatch, and no more than that.
  SendAway(Group(0, 1), 0, 90);
  EXPECT_THAT(Out(Group(0, 2), 0, 90).message(), HasSubstr("no slot is free"));
}

TEST_F(SwapEngineWithFakes, OfAMicrobatchThereIsNothingToDropTo) {
  SendAway(Group(0, 0), 0, 90);
  HaveBack(Group(0, 0), 0, 90);
  EXPECT_THAT(engine_->Drop(Group(0, 0)).message(), HasSubstr("nowhere else"));
}

TEST_F(SwapEngineWithFakes, CopiesTensorsIntoTheirSlotAndBack) {
  const ParkedGroup group = Group(0, 5);
  ASSERT_TRUE(engine_->StartOut(group, {Tensor(0, 90), Tensor(200, 30)}).ok());
  EXPECT_TRUE(engine_->IsAway(group));
  EXPECT_FALSE(*engine_->IsOut(group));
  ASSERT_EQ(backend_.copies.size(), 1u);
  EXPECT_EQ(backend_.copies[0].lane, CopyLane::kOut);
  backend_.Complete(0);
  EXPECT_TRUE(*engine_->IsOut(group));
  EXPECT_TRUE(engine_->WaitOut(group).ok());
  // 90 + 10 bytes with device 3, 20 with device 4.
  const std::vector<std::byte> before = tensors_;
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 90, lot_.At(kLender).begin()));
  EXPECT_TRUE(
      std::equal(before.begin() + 200, before.begin() + 210, lot_.At(kLender).begin() + 90));
  EXPECT_TRUE(std::equal(before.begin() + 210, before.begin() + 230, lot_.At(kOther).begin()));

  // The worker's memory is used by others meanwhile, and the tensors come back to other places.
  std::fill(tensors_.begin(), tensors_.end(), std::byte{0});
  ASSERT_TRUE(engine_->StartIn(group, {Tensor(500, 90), Tensor(700, 30)}).ok());
  EXPECT_EQ(backend_.copies[1].lane, CopyLane::kIn);
  EXPECT_FALSE(*engine_->IsIn(group));
  EXPECT_TRUE(engine_->IsAway(group));
  backend_.Complete(1);
  EXPECT_TRUE(*engine_->IsIn(group));
  EXPECT_FALSE(engine_->IsAway(group));
  EXPECT_TRUE(engine_->WaitIn(group).ok());
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 90, tensors_.begin() + 500));
  EXPECT_TRUE(std::equal(before.begin() + 200, before.begin() + 230, tensors_.begin() + 700));
  EXPECT_TRUE(engine_->CheckNothingAway().ok());
}

TEST_F(SwapEngineWithFakes, CompletesInAnyOrderOfCopies) {
  ASSERT_TRUE(Out(Group(0, 0), 0, 128).ok());
  ASSERT_TRUE(Out(Group(0, 1), 200, 128).ok());
  ASSERT_TRUE(Out(Group(1, 0), 400, 64).ok());
  const std::vector<std::byte> before = tensors_;
  for (const int copy : {2, 0, 1}) backend_.Complete(copy);
  for (const ParkedGroup& group : {Group(0, 1), Group(1, 0), Group(0, 0)}) {
    EXPECT_TRUE(engine_->WaitOut(group).ok());
  }
  std::fill(tensors_.begin(), tensors_.end(), std::byte{0});
  ASSERT_TRUE(engine_->StartIn(Group(0, 1), {Tensor(200, 128)}).ok());
  ASSERT_TRUE(engine_->StartIn(Group(0, 0), {Tensor(0, 128)}).ok());
  ASSERT_TRUE(engine_->StartIn(Group(1, 0), {Tensor(400, 64)}).ok());
  for (const int copy : {4, 5, 3}) backend_.Complete(copy);
  for (const ParkedGroup& group : {Group(0, 0), Group(1, 0), Group(0, 1)}) {
    EXPECT_TRUE(engine_->WaitIn(group).ok());
  }
  for (const auto& [begin, bytes] : {std::pair(0, 128), {200, 128}, {400, 64}}) {
    EXPECT_TRUE(std::equal(before.begin() + begin, before.begin() + begin + bytes,
                           tensors_.begin() + begin));
  }
}

TEST_F(SwapEngineWithFakes, UsesTheSlotAgainOnceItsTensorsAreBack) {
  for (int step = 0; step < 3; ++step) {
    for (int microbatch = 0; microbatch < 4; ++microbatch) {
      SendAway(Group(1, microbatch), 0, 64);
      HaveBack(Group(1, microbatch), 0, 64);
    }
  }
  // Out of one slot only: always the same 64 bytes.
  for (const FakeBackend::Copy& copy : backend_.copies) {
    if (copy.lane != CopyLane::kOut) continue;
    EXPECT_EQ(copy.parts.front().to.data(), lot_.At(kHost).data());
  }
}

TEST_F(SwapEngineWithFakes, MayLeaveTwiceWithinAStep) {
  SendAway(Group(0, 0), 0, 100);
  HaveBack(Group(0, 0), 100, 100);
  SendAway(Group(0, 0), 100, 60);  // other sizes
  HaveBack(Group(0, 0), 0, 60);
  EXPECT_TRUE(engine_->CheckNothingAway().ok());
}

TEST_F(SwapEngineWithFakes, LeavesATensorWithoutDataAsItIs) {
  const ParkedGroup group = Group(1, 0);
  ASSERT_TRUE(engine_->StartOut(group, {Tensor(0, 8), Tensor(8, 8), Tensor(16, 8)}).ok());
  backend_.Complete(0);
  ASSERT_TRUE(engine_->WaitOut(group).ok());
  const std::vector<std::byte> before = tensors_;
  std::fill(tensors_.begin(), tensors_.end(), std::byte{0});
  ASSERT_TRUE(engine_->StartIn(group, {Tensor(0, 8), {}, Tensor(16, 8)}).ok());
  backend_.Complete(1);
  ASSERT_TRUE(engine_->WaitIn(group).ok());
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 8, tensors_.begin()));
  EXPECT_EQ(tensors_[8], std::byte{0});
  EXPECT_TRUE(std::equal(before.begin() + 16, before.begin() + 24, tensors_.begin() + 16));
}

TEST_F(SwapEngineWithFakes, SaysWhichTensorCameBackChanged) {
  const ParkedGroup group = Group(0, 5);
  ASSERT_TRUE(engine_->StartOut(group, {Tensor(0, 90), Tensor(200, 30)}).ok());
  backend_.Complete(0);
  ASSERT_TRUE(engine_->WaitOut(group).ok());
  lot_.At(kOther)[19] ^= std::byte{1};  // one bit of the last byte
  ASSERT_TRUE(engine_->StartIn(group, {Tensor(500, 90), Tensor(700, 30)}).ok());
  backend_.Complete(1);
  EXPECT_EQ(
      engine_->WaitIn(group),
      absl::DataLossError("stage 0, group 0, microbatch 5: tensor 1 (30 bytes) came back changed"));
  EXPECT_EQ(engine_->IsIn(group).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SwapEngineWithFakes, CountsWhatWentOutByTier) {
  EXPECT_TRUE(engine_->TakeBytesOut().empty());
  SendAway(Group(0, 0), 0, 120);
  SendAway(Group(1, 0), 0, 40);
  ASSERT_TRUE(Out(Group(0, 1), 0, 128).ok());
  EXPECT_EQ(engine_->TakeBytesOut(),
            (std::map<Placement, Bytes>{{Placement::kPeerSwap, Bytes(248)},
                                        {Placement::kHostSwap, Bytes(40)}}));
  EXPECT_TRUE(engine_->TakeBytesOut().empty());
}

TEST_F(SwapEngineWithFakes, ShowsWhereEverythingIs) {
  EXPECT_EQ(engine_->Table(), "");
  SendAway(Group(0, 2), 0, 120);
  ASSERT_TRUE(engine_->StartOut(Group(0, 1), {Tensor(0, 3), Tensor(9, 4)}).ok());
  SendAway(Group(1, 0), 0, 64);
  ASSERT_TRUE(engine_->StartIn(Group(1, 0), {Tensor(0, 64)}).ok());
  const std::string table =
      "stage 0, group 0, microbatch 1: on its way out, 2 tensors, 7 of 128 bytes: device 3 [128, "
      "228), device 4 [64, 92)\n"
      "stage 0, group 0, microbatch 2: away, 1 tensors, 120 of 128 bytes: device 3 [0, 100), "
      "device 4 [0, 28)\n"
      "stage 0, group 1, microbatch 0: on its way in, 1 tensors, 64 of 64 bytes: host [0, 64)\n";
  EXPECT_EQ(engine_->Table(), table);
  EXPECT_EQ(engine_->CheckNothingAway(), absl::InternalError("still away:\n" + table));
}

TEST_F(SwapEngineWithFakes, RefusesEveryOrderThatIsImpossible) {
  const ParkedGroup group = Group(1, 2);
  const std::string name = "stage 0, group 1, microbatch 2 cannot ";
  const auto expect = [&](const absl::Status& status, const std::string& message) {
    EXPECT_EQ(status, absl::FailedPreconditionError(name + message));
  };
  const auto in = [&] { return engine_->StartIn(group, {Tensor(0, 64)}); };
  // Before it left.
  expect(engine_->WaitOut(group), "be waited for on its way out: it is not away");
  expect(engine_->IsOut(group).status(), "be waited for on its way out: it is not away");
  expect(in(), "come back: it is not away");
  expect(engine_->WaitIn(group), "be waited for on its way in: it is not away");
  expect(engine_->IsIn(group).status(), "be waited for on its way in: it is not away");
  // On its way out.
  ASSERT_TRUE(Out(group, 0, 64).ok());
  expect(Out(group, 0, 64), "leave: it is on its way out");
  expect(in(), "come back: it is on its way out");
  expect(engine_->WaitIn(group), "be waited for on its way in: it is on its way out");
  expect(engine_->IsIn(group).status(), "be waited for on its way in: it is on its way out");
  // Away.
  backend_.Complete(0);
  ASSERT_TRUE(engine_->WaitOut(group).ok());
  EXPECT_TRUE(engine_->WaitOut(group).ok());
  expect(Out(group, 0, 64), "leave: it is away");
  expect(engine_->WaitIn(group), "be waited for on its way in: it is away");
  // On its way in.
  ASSERT_TRUE(in().ok());
  expect(Out(group, 0, 64), "leave: it is on its way in");
  expect(in(), "come back: it is on its way in");
  expect(engine_->WaitOut(group), "be waited for on its way out: it is on its way in");
  expect(engine_->IsOut(group).status(), "be waited for on its way out: it is on its way in");
  // Back.
  backend_.Complete(1);
  ASSERT_TRUE(engine_->WaitIn(group).ok());
  EXPECT_TRUE(engine_->WaitIn(group).ok());
  expect(in(), "come back: it is not away");
  expect(engine_->WaitOut(group), "be waited for on its way out: it is not away");
  EXPECT_EQ(backend_.copies.size(), 2u);  // what was refused started nothing
}

TEST_F(SwapEngineWithFakes, RefusesMoreMicrobatchesThanThePlanHasAwayAtOnce) {
  SendAway(Group(0, 0), 0, 8);
  SendAway(Group(0, 1), 0, 8);
  EXPECT_EQ(Out(Group(0, 2), 0, 8),
            absl::FailedPreconditionError("stage 0, group 0, microbatch 2 cannot leave: no slot is "
                                          "free; the plan has the group away 2 times at once"));
  EXPECT_FALSE(engine_->IsAway(Group(0, 2)));
  HaveBack(Group(0, 0), 0, 8);
  EXPECT_TRUE(Out(Group(0, 2), 0, 8).ok());
}

TEST_F(SwapEngineWithFakes, RefusesTensorsThatAreNotThoseOfThePlan) {
  EXPECT_EQ(Out(Group(1, 0), 0, 65),
            absl::InvalidArgumentError("stage 0, group 1, microbatch 0: 1 tensors of 65 bytes "
                                       "shall leave, planned are 64"));
  EXPECT_EQ(Out({StageId(1), GroupId(0), kNoMicrobatch}, 0, 8),
            absl::InvalidArgumentError("stage 1, group 0: the plan does not park this group"));
  SendAway(Group(1, 0), 0, 60);
  EXPECT_EQ(engine_->StartIn(Group(1, 0), {Tensor(0, 59)}),
            absl::InvalidArgumentError("stage 0, group 1, microbatch 0: tensor 0 shall come back "
                                       "into 59 bytes, 60 have left"));
  EXPECT_EQ(engine_->StartIn(Group(1, 0), {Tensor(0, 30), Tensor(30, 30)}),
            absl::InvalidArgumentError("stage 0, group 1, microbatch 0: 2 tensors shall come back, "
                                       "1 have left"));
  HaveBack(Group(1, 0), 0, 60);
}

TEST_F(SwapEngineWithFakes, PassesOnErrorsOfTheBackendWithTheGroup) {
  ASSERT_TRUE(Out(Group(0, 3), 0, 8).ok());
  backend_.copies[0].status = absl::InternalError("copy out, link 0, chunk 7: gone");
  const absl::Status expected =
      absl::InternalError("stage 0, group 0, microbatch 3: copy out, link 0, chunk 7: gone");
  EXPECT_EQ(engine_->WaitOut(Group(0, 3)), expected);
  EXPECT_EQ(engine_->IsOut(Group(0, 3)).status(), expected);
  SendAway(Group(1, 0), 0, 8);
  ASSERT_TRUE(engine_->StartIn(Group(1, 0), {Tensor(0, 8)}).ok());
  backend_.copies[2].status = absl::InternalError("gone");
  EXPECT_EQ(engine_->WaitIn(Group(1, 0)),
            absl::InternalError("stage 0, group 1, microbatch 0: gone"));
  EXPECT_THAT(engine_->Table(), HasSubstr("microbatch 3: on its way out"));
}

TEST_F(SwapEngineWithFakes, GivesUpWhatIsUnderWayWhenItEnds) {
  SendAway(Group(0, 0), 0, 8);
  engine_ = nullptr;
  EXPECT_EQ(backend_.aborts, 0);  // nothing moves
  engine_ = std::make_unique<SwapEngine>(&backend_, parking_, lot_.Memory(), SwapCheck::kFull);
  ASSERT_TRUE(Out(Group(0, 0), 0, 8).ok());
  engine_->Abort();
  EXPECT_EQ(backend_.aborts, 1);
  engine_ = nullptr;
  EXPECT_EQ(backend_.aborts, 2);
}

class SwapEngineWithoutChecks : public SwapEngineWithFakes {
 protected:
  SwapEngineWithoutChecks() : SwapEngineWithFakes(SwapCheck::kOff) {}
};

TEST_F(SwapEngineWithoutChecks, LooksAtNothing) {
  SendAway(Group(1, 0), 0, 64);
  EXPECT_TRUE(engine_->CheckNothingAway().ok());
  lot_.At(kHost)[0] ^= std::byte{1};
  HaveBack(Group(1, 0), 0, 64);
}

class SwapEngineWithCheapChecks : public SwapEngineWithFakes {
 protected:
  SwapEngineWithCheapChecks() : SwapEngineWithFakes(SwapCheck::kCheap) {}
};

TEST_F(SwapEngineWithCheapChecks, LooksAtTheBooksButNotAtTheBytes) {
  SendAway(Group(1, 0), 0, 64);
  EXPECT_EQ(engine_->CheckNothingAway().code(), absl::StatusCode::kInternal);
  lot_.At(kHost)[0] ^= std::byte{1};
  HaveBack(Group(1, 0), 0, 64);
  EXPECT_TRUE(engine_->CheckNothingAway().ok());
}

}  // namespace
}  // namespace siphon
