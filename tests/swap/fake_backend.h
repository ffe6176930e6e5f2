#ifndef SIPHON_TESTS_SWAP_FAKE_BACKEND_H_
#define SIPHON_TESTS_SWAP_FAKE_BACKEND_H_

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "swap/device/device_backend.h"

namespace siphon {

// Copies that are complete when the test says so. Wait on one that the test holds back is an error
// of the test: it fails with DeadlineExceeded.
class FakeBackend final : public DeviceBackend {
 public:
  struct Copy {
    CopyLane lane = CopyLane::kOut;
    std::vector<CopyPart> parts;
    bool complete = false;
    absl::Status status;
  };

  CopyEvent StartCopy(CopyLane lane, std::vector<CopyPart> parts) override {
    copies.push_back({.lane = lane, .parts = std::move(parts)});
    return CopyEvent(static_cast<int>(copies.size()) - 1);
  }
  absl::StatusOr<bool> Test(CopyEvent event) override {
    const Copy& copy = copies.at(event.value);
    if (!copy.status.ok()) return copy.status;
    return copy.complete;
  }
  absl::Status Wait(CopyEvent event) override {
    Copy& copy = copies.at(event.value);
    if (!copy.status.ok() || copy.complete) return copy.status;
    if (hold) return absl::DeadlineExceededError("held back by the test");
    Complete(event.value);
    return absl::OkStatus();
  }
  void Abort() override { ++aborts; }
  std::vector<CopyLinkUse> TakeUse() override { return {}; }
  void SlowDown(CopyLinkId, double) override {}

  // Moves the bytes of the copy with that number.
  void Complete(int number) {
    Copy& copy = copies.at(number);
    if (copy.complete) return;
    for (const CopyPart& part : copy.parts) {
      std::memcpy(part.to.data(), part.from.data(), part.from.size());
    }
    copy.complete = true;
  }

  std::vector<Copy> copies;  // in the order of StartCopy
  bool hold = false;         // whether Wait refuses copies that are not complete
  int aborts = 0;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_SWAP_FAKE_BACKEND_H_
