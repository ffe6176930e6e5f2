// A worker that parks at another process and lends to a third one, for tests of several processes:
// cuda_ring_worker DEVICE TRIPS SEED. It lends memory of DEVICE and says the handle; reads the
// handle of whom it parks at; sends groups of tensors there and to the host, has them back, all by
// a swap engine that checks each tensor, and says how many came back as they were. Then:
//   close  it parks nowhere any more; 0
//   free   gives its memory back; how often memory was freed while somebody had it open
// and ends with its input.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "planner/status.h"
#include "swap/swap_engine.h"
#include "tests/planner/dice.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/swap/device/backend_rig.h"
#include "tests/swap/device/cuda_rig.h"
#include "tests/swap/parking_lot.h"

namespace siphon {
namespace {

constexpr ParkingPlace kNext{Placement::kPeerSwap, DeviceId(1)};
constexpr ParkingPlace kHost{Placement::kHostSwap, DeviceId(0)};
constexpr int kSlots = 3;
constexpr int64_t kAtNext = 200'000;
constexpr int64_t kAtHost = 50'001;

struct Trip {
  ParkedGroup group;
  absl::Span<std::byte> tensors[2];
};

void Check(const absl::Status& status) { SIPHON_CHECK(status.ok(), status.message()); }

class RingWorker {
 public:
  RingWorker(int seed, absl::Span<std::byte> next) : dice_(seed), seed_(seed), rig_(MakeRig()) {
    AddSlots(parking_, 0, kSlots, {{kNext, kAtNext}, {kHost, kAtHost}});
    const auto bytes = [&](const ParkingPlace& place) {
      return static_cast<size_t>(parking_.bytes.at(place).value);
    };
    const std::map<ParkingPlace, ParkingMemory> memory = {
        {kHost, {rig_->Take(BackendRig::Where::kHost, bytes(kHost)), CopyLinkId(0)}},
        {kNext, {next.subspan(0, bytes(kNext)), CopyLinkId(1)}}};
    backend_ = rig_->MakeBackend({.links = 2, .chunk = 30'000});
    engine_ = std::make_unique<SwapEngine>(backend_.get(), parking_, memory, SwapCheck::kFull);
    for (int slot = 0; slot < kSlots; ++slot) {
      free_.push_back({});
      for (absl::Span<std::byte>& tensor : free_.back().tensors) {
        tensor = rig_->Take(BackendRig::Where::kWorker, (kAtNext + kAtHost) / 2);
      }
    }
  }

  // How many of the trips brought everything back.
  int Run(int trips) {
    int good = 0;
    for (int started = 0; started < trips || !away_.empty();) {
      const bool leaves = started < trips && !free_.empty() && dice_.Roll(0, 1) == 0;
      if (leaves) {
        Leave(started++);
      } else if (!away_.empty()) {
        good += HaveBack() ? 1 : 0;
      }
    }
    Check(engine_->CheckNothingAway());
    return good;
  }

 private:
  std::vector<std::byte> PatternOf(const Trip& trip, size_t tensor) const {
    const auto number = static_cast<uint64_t>(trip.group.microbatch.value);
    return RigPattern(trip.tensors[tensor].size(),
                      1000 * static_cast<uint64_t>(seed_) + 2 * number + tensor);
  }
  void Leave(int number) {
    Trip trip = free_.back();
    free_.pop_back();
    trip.group = {StageId(0), GroupId(0), MicrobatchId(number)};
    std::vector<absl::Span<const std::byte>> out;
    for (size_t tensor = 0; tensor < 2; ++tensor) {
      rig_->Write(trip.tensors[tensor], PatternOf(trip, tensor));
      out.push_back(trip.tensors[tensor]);
    }
    Check(engine_->StartOut(trip.group, out));
    away_.push_back(trip);
  }
  bool HaveBack() {
    const auto place = dice_.Roll(0, static_cast<int>(away_.size()) - 1);
    const Trip trip = away_[static_cast<size_t>(place)];
    away_.erase(away_.begin() + place);
    Check(engine_->WaitOut(trip.group));
    for (const absl::Span<std::byte> tensor : trip.tensors) {
      rig_->Write(tensor, std::vector<std::byte>(tensor.size(), std::byte{0xAA}));
    }
    Check(engine_->StartIn(trip.group, {trip.tensors[0], trip.tensors[1]}));
    Check(engine_->WaitIn(trip.group));
    free_.push_back(trip);
    return rig_->Read(trip.tensors[0]) == PatternOf(trip, 0) &&
           rig_->Read(trip.tensors[1]) == PatternOf(trip, 1);
  }

  Dice dice_;
  const int seed_;
  std::unique_ptr<BackendRig> rig_;
  WorkerParking parking_;
  std::unique_ptr<DeviceBackend> backend_;
  std::unique_ptr<SwapEngine> engine_;
  std::vector<Trip> free_, away_;
};

int Main(int device, int trips, int seed) {
  auto arena = TheCudaModule().MakeArena(device, Bytes(kSlots * (kAtNext + 64)));
  Check(arena.status());
  std::cout << absl::BytesToHexString((*arena)->handle()) << std::endl;
  std::string line;
  std::getline(std::cin, line);
  auto next = TheCudaModule().OpenArena(0, absl::HexStringToBytes(line));
  Check(next.status());
  std::cout << RingWorker(seed, (*next)->memory()).Run(trips) << std::endl;
  while (std::getline(std::cin, line)) {
    if (line == "close") {
      *next = nullptr;
      std::cout << 0 << std::endl;
    } else if (line == "free") {
      *arena = nullptr;
      std::cout << (FakeCuda::IsThere() ? FakeCuda::Get("freed_while_opened") : 0) << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return siphon::Main(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]));
}
