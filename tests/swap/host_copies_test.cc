// Copies to the host and back besides groups, and work on groups where they are parked.

#include "swap/host_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "swap/swap_engine.h"
#include "tests/swap/fake_backend.h"
#include "tests/swap/parking_lot.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr ParkingPlace kHost = {.tier = Placement::kHostSwap};
constexpr ParkingPlace kLender = {.tier = Placement::kPeerSwap, .lender = DeviceId(3)};

ParkedGroup State(int group) { return {StageId(0), GroupId(group), kNoMicrobatch}; }

std::vector<std::byte> Counting(size_t bytes, int first) {
  std::vector<std::byte> memory(bytes);
  for (size_t byte = 0; byte < bytes; ++byte) memory[byte] = static_cast<std::byte>(first + byte);
  return memory;
}

// Group 0 on the host, group 1 with a lender; copies are done when they are waited for.
class HostCopiesOfEngine : public testing::Test {
 protected:
  static WorkerParking Layout() {
    WorkerParking parking;
    AddSlots(parking, 0, 1, {{kHost, 100}});
    AddSlots(parking, 1, 1, {{kLender, 100}});
    return parking;
  }
  void SendAway(int group) {
    ASSERT_TRUE(engine_
                    .StartOut(State(group), {absl::MakeSpan(tensors_).subspan(0, 60),
                                             absl::MakeSpan(tensors_).subspan(64, 30)})
                    .ok());
    ASSERT_TRUE(engine_.WaitOut(State(group)).ok());
  }
  absl::Status BringBack(int group) {
    const absl::Status started = engine_.StartIn(
        State(group),
        {absl::MakeSpan(tensors_).subspan(0, 60), absl::MakeSpan(tensors_).subspan(64, 30)});
    return started.ok() ? engine_.WaitIn(State(group)) : started;
  }

  FakeBackend backend_;
  ParkingLot lot_{Layout()};
  std::vector<std::byte> tensors_ = Counting(100, 1);
  SwapEngine engine_{&backend_, Layout(), lot_.Memory(), SwapCheck::kFull};
};

TEST_F(HostCopiesOfEngine, GoOverTheHostsLinkAndCountAsSwappedThere) {
  const std::vector<std::byte> gradient = Counting(40, 7);
  std::vector<std::byte> on_host(40), parameter(40);
  HostCopies& copies = engine_.host_copies();
  const CopyEvent out = copies.Start(CopyLane::kOut, {{gradient, absl::MakeSpan(on_host)}, {}});
  EXPECT_TRUE(copies.moves());
  ASSERT_EQ(backend_.copies.size(), 1u);
  ASSERT_EQ(backend_.copies[0].parts.size(), 1u) << "nothing of what is empty";
  EXPECT_EQ(backend_.copies[0].parts[0].link, CopyLinkId(0));
  ASSERT_TRUE(copies.Wait(out).ok());
  EXPECT_TRUE(copies.Wait(out).ok()) << "any number of times";
  EXPECT_FALSE(copies.moves());
  EXPECT_EQ(on_host, gradient);
  ASSERT_TRUE(
      copies.Wait(copies.Start(CopyLane::kIn, {{on_host, absl::MakeSpan(parameter)}})).ok());
  EXPECT_EQ(parameter, gradient);
  EXPECT_EQ(backend_.copies[1].lane, CopyLane::kIn);
  EXPECT_EQ(engine_.TakeBytesOut(),
            (std::map<Placement, Bytes>{{Placement::kHostSwap, Bytes(40)}}));
  EXPECT_TRUE(engine_.TakeBytesOut().empty());
}

TEST_F(HostCopiesOfEngine, SayWhatArrivedChangedAndWhatFailed) {
  const std::vector<std::byte> gradient = Counting(40, 7);
  std::vector<std::byte> on_host(40);
  HostCopies& copies = engine_.host_copies();
  const CopyEvent changed = copies.Start(CopyLane::kOut, {{gradient, absl::MakeSpan(on_host)}});
  backend_.Complete(0);
  on_host[11] ^= std::byte{1};
  const absl::Status status = copies.Wait(changed);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a copy of 40 bytes"));

  const CopyEvent failed = copies.Start(CopyLane::kOut, {{gradient, absl::MakeSpan(on_host)}});
  backend_.copies[1].status = absl::InternalError("no way");
  EXPECT_EQ(copies.Wait(failed), absl::InternalError("no way"));
}

TEST_F(HostCopiesOfEngine, AreGivenUpWithTheGroups) {
  std::vector<std::byte> on_host(100);
  engine_.host_copies().Start(CopyLane::kOut, {{tensors_, absl::MakeSpan(on_host)}});
  engine_.Abort();
  EXPECT_EQ(backend_.aborts, 1);
  engine_.Abort();
  EXPECT_EQ(backend_.aborts, 1) << "nothing is under way any more";
}

// The slot is worked on: what comes back is what was made of it.
TEST_F(HostCopiesOfEngine, LetGroupsBeWorkedOnWhereTheyAreParked) {
  EXPECT_THAT(std::string(engine_.OnHost(State(0)).status().message()),
              HasSubstr("cannot be worked on where it is parked"));
  SendAway(0);
  const auto parked = engine_.OnHost(State(0));
  ASSERT_TRUE(parked.ok()) << parked.status();
  ASSERT_EQ(parked->size(), 2u);
  EXPECT_EQ((*parked)[0].size(), 60u);
  ASSERT_EQ((*parked)[1].size(), 30u);
  EXPECT_EQ((*parked)[1][0], tensors_[64]);
  (*parked)[1][0] = std::byte{200};
  EXPECT_EQ(BringBack(0).code(), absl::StatusCode::kDataLoss) << "nobody has said so";
}

TEST_F(HostCopiesOfEngine, TakeChangesOfGroupsThatAreSaid) {
  SendAway(0);
  for (const std::byte value : {std::byte{200}, std::byte{201}}) {
    const auto parked = engine_.OnHost(State(0));
    ASSERT_TRUE(parked.ok()) << parked.status();
    (*parked)[1][0] = value;
    ASSERT_TRUE(engine_.ChangedOnHost(State(0)).ok());
    const absl::Status back = BringBack(0);
    ASSERT_TRUE(back.ok()) << back;
    EXPECT_EQ(tensors_[64], value);
    // Away again without a copy: the slot is what it was made.
    ASSERT_TRUE(engine_.Drop(State(0)).ok());
  }
}

TEST_F(HostCopiesOfEngine, LeaveAloneWhatIsParkedElsewhere) {
  SendAway(1);
  const auto parked = engine_.OnHost(State(1));
  ASSERT_TRUE(parked.ok()) << parked.status();
  EXPECT_TRUE(parked->empty());
}

}  // namespace
}  // namespace siphon
