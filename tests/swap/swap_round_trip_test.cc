// The engine with the copies of the CPU backend: what leaves comes back bit for bit, whatever its
// sizes, places and order, and an error at any chunk is an error of the group, never a wrong byte.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "swap/device/cpu_backend.h"
#include "swap/swap_engine.h"
#include "tests/planner/dice.h"
#include "tests/swap/parking_lot.h"

namespace siphon {
namespace {

using testing::HasSubstr;

ParkedGroup Group(int group, int microbatch) {
  return {StageId(0), GroupId(group), MicrobatchId(microbatch)};
}

CpuBackendOptions Links(int links, int64_t chunk) {
  CpuBackendOptions options;
  options.links.resize(links);
  options.chunk = Bytes(chunk);
  return options;
}

// Fast, and every byte depends on the seed.
std::vector<std::byte> Pattern(size_t bytes, uint64_t seed) {
  std::vector<std::byte> pattern(bytes);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (size_t at = 0; at < bytes; at += sizeof(state)) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(&pattern[at], &state, std::min(sizeof(state), bytes - at));
  }
  return pattern;
}

// `bytes` in stripes of random sizes over so many lenders; 0 lenders: at the host, -1: on a drive.
std::vector<std::pair<ParkingPlace, int64_t>> Stripes(Dice& dice, size_t bytes, int lenders) {
  if (lenders < 0) return {{{.tier = Placement::kNvmeSwap}, static_cast<int64_t>(bytes)}};
  if (lenders == 0) return {{{.tier = Placement::kHostSwap}, static_cast<int64_t>(bytes)}};
  std::vector<std::pair<ParkingPlace, int64_t>> stripes;
  int64_t left = static_cast<int64_t>(bytes);
  for (int lender = 1; lender <= lenders; ++lender) {
    const int64_t share = lender == lenders ? left : dice.Roll(0, static_cast<int>(left));
    left -= share;
    if (share > 0) {
      stripes.push_back({{.tier = Placement::kPeerSwap, .lender = DeviceId(lender)}, share});
    }
  }
  return stripes;
}

// Tensors that leave, are overwritten, and come back.
struct Cargo {
  std::vector<std::vector<std::byte>> tensors;
  std::vector<std::vector<std::byte>> before;

  void Add(size_t bytes, uint64_t seed) {
    tensors.push_back(Pattern(bytes, seed));
    before.push_back(tensors.back());
  }
  void Overwrite() {
    for (std::vector<std::byte>& tensor : tensors) {
      std::fill(tensor.begin(), tensor.end(), std::byte{0xAA});
    }
  }
  std::vector<absl::Span<const std::byte>> Out() const { return {tensors.begin(), tensors.end()}; }
  std::vector<absl::Span<std::byte>> In() {
    std::vector<absl::Span<std::byte>> spans;
    for (std::vector<std::byte>& tensor : tensors) spans.push_back(absl::MakeSpan(tensor));
    return spans;
  }
};

TEST(SwapRoundTrip, BringsEverySizeBackFromUpToFiveLenders) {
  Dice dice(3);
  for (const std::vector<size_t>& sizes : {std::vector<size_t>{},
                                           {0},
                                           {1},
                                           {63},
                                           {64},
                                           {65, 0, 1},
                                           {3 << 20},
                                           {5, 2 << 20, 63, 4097}}) {
    for (int lenders = 0; lenders <= 5; ++lenders) {
      Cargo cargo;
      size_t bytes = 0;
      for (const size_t size : sizes) {
        cargo.Add(size, size + 1);
        bytes += size;
      }
      WorkerParking parking;
      AddSlots(parking, 0, 1, Stripes(dice, bytes, lenders));
      ParkingLot lot(parking);
      CpuBackend backend(Links(lot.Links(), bytes > 10'000 ? 1 << 18 : 100));
      SwapEngine engine(&backend, parking, lot.Memory(), SwapCheck::kFull);
      ASSERT_TRUE(engine.StartOut(Group(0, 0), cargo.Out()).ok());
      ASSERT_TRUE(engine.WaitOut(Group(0, 0)).ok());
      cargo.Overwrite();
      ASSERT_TRUE(engine.StartIn(Group(0, 0), cargo.In()).ok());
      ASSERT_TRUE(engine.WaitIn(Group(0, 0)).ok());
      EXPECT_EQ(cargo.tensors, cargo.before);
      EXPECT_TRUE(engine.CheckNothingAway().ok());
    }
  }
}

// Many microbatches of several groups under way in both lanes at once, in an order drawn at random.
class Traffic {
 public:
  static constexpr int kGroups = 3;

  Traffic(Dice& dice, int slots, int links) : dice_(dice), slots_(slots) {
    for (int group = 0; group < kGroups; ++group) {
      sizes_.push_back(dice.Roll(0, 5000));
      // The last of them on a drive.
      const int lenders = group == kGroups - 1 ? -1 : links;
      AddSlots(parking_, group, slots, Stripes(dice, sizes_.back(), lenders));
    }
    lot_ = std::make_unique<ParkingLot>(parking_);
    CpuBackendOptions options = Links(lot_->Links(), dice.Roll(50, 3000));
    options.drive = lot_->Drive();
    backend_ = std::make_unique<CpuBackend>(options);
    engine_ =
        std::make_unique<SwapEngine>(backend_.get(), parking_, lot_->Memory(), SwapCheck::kFull);
  }

  // Any one thing that may happen now.
  void Step() {
    switch (dice_.Roll(0, 2)) {
      case 0:
        return Leave(dice_.Roll(0, kGroups - 1));
      case 1:
        return TurnRound();
      default:
        return HaveBack();
    }
  }
  void Finish() {
    while (!leaving_.empty()) TurnRound();
    while (!returning_.empty()) HaveBack();
    EXPECT_TRUE(engine_->CheckNothingAway().ok());
  }
  int trips() const { return trips_; }

 private:
  struct Traveller {
    ParkedGroup group;
    Cargo cargo;
  };

  Traveller Draw(std::vector<Traveller>& from) {
    const int place = dice_.Roll(0, static_cast<int>(from.size()) - 1);
    Traveller drawn = std::move(from[place]);
    from.erase(from.begin() + place);
    return drawn;
  }
  void Leave(int group) {
    if (away_[group] == slots_) return;
    ++away_[group];
    Traveller& traveller = leaving_.emplace_back(Traveller{Group(group, trips_++), {}});
    traveller.cargo.Add(sizes_[group] / 3, trips_);
    traveller.cargo.Add(sizes_[group] - sizes_[group] / 3, trips_ + 1000);
    ASSERT_TRUE(engine_->StartOut(traveller.group, traveller.cargo.Out()).ok());
  }
  void TurnRound() {
    if (leaving_.empty()) return;
    Traveller& traveller = returning_.emplace_back(Draw(leaving_));
    ASSERT_TRUE(engine_->WaitOut(traveller.group).ok());
    traveller.cargo.Overwrite();
    ASSERT_TRUE(engine_->StartIn(traveller.group, traveller.cargo.In()).ok());
  }
  void HaveBack() {
    if (returning_.empty()) return;
    const Traveller traveller = Draw(returning_);
    ASSERT_TRUE(engine_->WaitIn(traveller.group).ok());
    EXPECT_EQ(traveller.cargo.tensors, traveller.cargo.before);
    --away_[traveller.group.group.value];
  }

  Dice& dice_;
  const int slots_;
  std::vector<size_t> sizes_;
  WorkerParking parking_;
  std::unique_ptr<ParkingLot> lot_;
  std::unique_ptr<CpuBackend> backend_;
  std::vector<Traveller> leaving_, returning_;
  std::unique_ptr<SwapEngine> engine_;
  std::array<int, kGroups> away_ = {};
  int trips_ = 0;
};

TEST(SwapRoundTrip, KeepsManyGroupsApartWhileBothLanesRun) {
  Dice dice(17);
  for (int round = 0; round < 8; ++round) {
    Traffic traffic(dice, dice.Roll(1, 4), dice.Roll(1, 5));
    for (int step = 0; step < 300; ++step) traffic.Step();
    traffic.Finish();
    EXPECT_GT(traffic.trips(), 30);
  }
}

// To the drive, by both ways; chunks end anywhere.
TEST(SwapRoundTrip, BringsEverySizeBackFromADrive) {
  for (const std::vector<size_t>& sizes :
       {std::vector<size_t>{0}, {1}, {4096}, {65, 0, 1}, {3 << 20}, {5, 2 << 20, 63, 4097}}) {
    for (const NvmeIoKind io : {NvmeIoKind::kAny, NvmeIoKind::kThreads}) {
      Cargo cargo[2];
      WorkerParking parking;
      for (int group = 0; group < 2; ++group) {
        size_t bytes = 0;
        for (const size_t size : sizes) cargo[group].Add(size, size + group);
        for (const size_t size : sizes) bytes += size;
        AddSlots(parking, group, 1,
                 {{{.tier = Placement::kNvmeSwap}, static_cast<int64_t>(bytes)}});
      }
      ParkingLot lot(parking, {.io = io, .mover = {.buffer = Bytes(1 << 16)}});
      CpuBackendOptions options =
          Links(lot.Links(), parking.bytes.begin()->second > Bytes(20'000) ? 300'001 : 1000);
      options.drive = lot.Drive();
      CpuBackend backend(options);
      SwapEngine engine(&backend, parking, lot.Memory(), SwapCheck::kFull);
      for (int group = 0; group < 2; ++group) {
        ASSERT_TRUE(engine.StartOut(Group(group, 0), cargo[group].Out()).ok());
      }
      for (int group = 0; group < 2; ++group) {
        ASSERT_TRUE(engine.WaitOut(Group(group, 0)).ok());
        cargo[group].Overwrite();
        ASSERT_TRUE(engine.StartIn(Group(group, 0), cargo[group].In()).ok());
      }
      for (int group = 0; group < 2; ++group) {
        ASSERT_TRUE(engine.WaitIn(Group(group, 0)).ok());
        EXPECT_EQ(cargo[group].tensors, cargo[group].before);
      }
    }
  }
}

TEST(SwapRoundTrip, NamesTheGroupWhoseDriveFails) {
  WorkerParking parking;
  AddSlots(parking, 0, 1, {{{.tier = Placement::kNvmeSwap}, 10'000}});
  ParkingLot lot(parking);
  CpuBackendOptions options = Links(1, 1 << 20);
  options.drive = lot.Drive();
  Cargo cargo;
  cargo.Add(10'000, 1);
  CpuBackend backend(options);
  SwapEngine engine(&backend, parking, lot.Memory(), SwapCheck::kCheap);
  ASSERT_TRUE(engine.StartOut(Group(0, 3), cargo.Out()).ok());
  ASSERT_TRUE(engine.WaitOut(Group(0, 3)).ok());
  ASSERT_EQ(ftruncate(lot.drive().file().fd(), 0), 0);
  ASSERT_TRUE(engine.StartIn(Group(0, 3), cargo.In()).ok());
  const absl::Status status = engine.WaitIn(Group(0, 3));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              testing::MatchesRegex("stage 0, group 0, microbatch 3: drive file .*: somebody has "
                                    "cut it to 0 of 12288 bytes, .*"));
}

// Two groups leave and come back; the n-th chunk of all fails, for every n.
TEST(SwapRoundTrip, IsAnErrorOfTheGroupWhicheverChunkFails) {
  constexpr int kChunks = 12;  // 300 bytes at each of 2 places, out and back, in chunks of 100
  for (int failing = 0; failing <= kChunks; ++failing) {
    WorkerParking parking;
    AddSlots(parking, 0, 1, {{{.tier = Placement::kHostSwap}, 300}});
    AddSlots(parking, 1, 1, {{{.tier = Placement::kPeerSwap, .lender = DeviceId(1)}, 300}});
    ParkingLot lot(parking);
    Cargo cargo[2];  // outlives the engine, which may have copies under way at its end
    std::atomic<int> chunks = 0;
    CpuBackendOptions options = Links(2, 100);
    options.before_chunk = [&](const CopyChunk&) {
      return chunks++ == failing ? absl::UnavailableError("injected") : absl::OkStatus();
    };
    CpuBackend backend(options);
    SwapEngine engine(&backend, parking, lot.Memory(), SwapCheck::kFull);
    absl::Status status;
    for (int group = 0; group < 2 && status.ok(); ++group) {
      cargo[group].Add(300, group);
      ASSERT_TRUE(engine.StartOut(Group(group, 0), cargo[group].Out()).ok());
    }
    for (int group = 0; group < 2 && status.ok(); ++group) {
      status = engine.WaitOut(Group(group, 0));
      if (!status.ok()) break;
      cargo[group].Overwrite();
      ASSERT_TRUE(engine.StartIn(Group(group, 0), cargo[group].In()).ok());
    }
    for (int group = 0; group < 2 && status.ok(); ++group) {
      status = engine.WaitIn(Group(group, 0));
      EXPECT_TRUE(!status.ok() || cargo[group].tensors == cargo[group].before);
    }
    EXPECT_EQ(status.ok(), failing == kChunks) << "chunk " << failing << ": " << status;
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()),
                testing::MatchesRegex("stage 0, group [01], microbatch 0: copy (out|in), link "
                                      "[01], chunk [0-2] \\(100 bytes\\): injected"));
    EXPECT_THAT(engine.Table(), HasSubstr("on its way"));
  }
}

// An engine that ends while copies are under way leaves the worker's memory alone from then on.
TEST(SwapRoundTrip, MovesNothingAnyMoreOnceTheEngineIsGone) {
  WorkerParking parking;
  AddSlots(parking, 0, 1, {{{.tier = Placement::kHostSwap}, 1000}});
  ParkingLot lot(parking);
  CpuBackendOptions options = Links(1, 10);
  options.links[0].rate = BytesPerSecond(1);  // minutes in all
  CpuBackend backend(options);
  Cargo cargo;
  cargo.Add(1000, 1);
  {
    SwapEngine engine(&backend, parking, lot.Memory(), SwapCheck::kFull);
    ASSERT_TRUE(engine.StartOut(Group(0, 0), cargo.Out()).ok());
  }
  cargo.tensors.clear();  // address sanitizer would see a late read
  EXPECT_EQ(backend.Wait(CopyEvent(0)).code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace siphon
