#ifndef SIPHON_TESTS_SWAP_ENGINE_WITH_FAKES_H_
#define SIPHON_TESTS_SWAP_ENGINE_WITH_FAKES_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "swap/swap_engine.h"
#include "tests/swap/fake_backend.h"
#include "tests/swap/parking_lot.h"

namespace siphon {

// Group 0: 100 bytes at device 3 and 28 at device 4, two slots. Group 1: 64 bytes at the host, one
// slot. Copies move when the test says so.
class SwapEngineWithFakes : public testing::Test {
 protected:
  static constexpr ParkingPlace kHost = {.tier = Placement::kHostSwap};
  static constexpr ParkingPlace kLender = {.tier = Placement::kPeerSwap, .lender = DeviceId(3)};
  static constexpr ParkingPlace kOther = {.tier = Placement::kPeerSwap, .lender = DeviceId(4)};

  static ParkedGroup Group(int group, int microbatch) {
    return {StageId(0), GroupId(group), MicrobatchId(microbatch)};
  }
  explicit SwapEngineWithFakes(SwapCheck check = SwapCheck::kFull)
      : parking_(Layout()),
        lot_(parking_),
        engine_(std::make_unique<SwapEngine>(&backend_, parking_, lot_.Memory(), check)) {
    for (size_t byte = 0; byte < tensors_.size(); ++byte) {
      tensors_[byte] = static_cast<std::byte>(byte * 7 + 1);
    }
    backend_.hold = true;
  }
  static WorkerParking Layout() {
    WorkerParking parking;
    AddSlots(parking, 0, 2, {{kLender, 100}, {kOther, 28}});
    AddSlots(parking, 1, 1, {{kHost, 64}});
    return parking;
  }
  absl::Span<std::byte> Tensor(size_t begin, size_t bytes) {
    return absl::MakeSpan(tensors_).subspan(begin, bytes);
  }
  absl::Status Out(const ParkedGroup& group, size_t begin, size_t bytes) {
    return engine_->StartOut(group, {Tensor(begin, bytes)});
  }
  // Out, the copy moves, and waited for.
  void SendAway(const ParkedGroup& group, size_t begin, size_t bytes) {
    ASSERT_TRUE(Out(group, begin, bytes).ok());
    backend_.Complete(static_cast<int>(backend_.copies.size()) - 1);
    ASSERT_TRUE(engine_->WaitOut(group).ok());
  }
  void HaveBack(const ParkedGroup& group, size_t begin, size_t bytes) {
    ASSERT_TRUE(engine_->StartIn(group, {Tensor(begin, bytes)}).ok());
    backend_.Complete(static_cast<int>(backend_.copies.size()) - 1);
    ASSERT_TRUE(engine_->WaitIn(group).ok());
  }

  FakeBackend backend_;
  const WorkerParking parking_;
  ParkingLot lot_;
  std::vector<std::byte> tensors_ = std::vector<std::byte>(1000);
  std::unique_ptr<SwapEngine> engine_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_SWAP_ENGINE_WITH_FAKES_H_
