// The engine with the copies of any backend: what leaves comes back bit for bit, whatever its
// sizes, places and order, and an error at any chunk is an error of the group, never a wrong byte.
// Linked once with each kind's rig.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "swap/swap_engine.h"
#include "tests/planner/dice.h"
#include "tests/swap/device/backend_rig.h"
#include "tests/swap/parking_lot.h"
#include "tests/swap/rig_parking.h"

namespace siphon {
namespace {

using testing::HasSubstr;

ParkedGroup Group(int group, int microbatch) {
  return {StageId(0), GroupId(group), MicrobatchId(microbatch)};
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
class Cargo {
 public:
  explicit Cargo(BackendRig& rig) : rig_(&rig) {}
  void Add(size_t bytes, uint64_t seed) {
    tensors_.push_back(rig_->Take(BackendRig::Where::kWorker, bytes));
    before_.push_back(RigPattern(bytes, seed));
    rig_->Write(tensors_.back(), before_.back());
  }
  void Overwrite() const {
    for (const absl::Span<std::byte> tensor : tensors_) {
      rig_->Write(tensor, std::vector<std::byte>(tensor.size(), std::byte{0xAA}));
    }
  }
  std::vector<absl::Span<const std::byte>> Out() const {
    return {tensors_.begin(), tensors_.end()};
  }
  const std::vector<absl::Span<std::byte>>& In() const { return tensors_; }
  bool IsAsBefore() const {
    for (size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
      if (rig_->Read(tensors_[tensor]) != before_[tensor]) return false;
    }
    return true;
  }

 private:
  BackendRig* rig_;
  std::vector<absl::Span<std::byte>> tensors_;
  std::vector<std::vector<std::byte>> before_;
};

class SwapRoundTrip : public testing::Test {
 protected:
  void SetUp() override {
    SIPHON_SKIP_WITHOUT_RIG();
    rig_ = MakeRig();
  }
  std::unique_ptr<BackendRig> rig_;
};

TEST_F(SwapRoundTrip, BringsEverySizeBackFromUpToFiveLenders) {
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
      Cargo cargo(*rig_);
      size_t bytes = 0;
      for (const size_t size : sizes) {
        cargo.Add(size, size + 1);
        bytes += size;
      }
      WorkerParking parking;
      AddSlots(parking, 0, 1, Stripes(dice, bytes, lenders));
      RigParking lot(*rig_, parking);
      const auto backend = rig_->MakeBackend(lot.Backend(bytes > 10'000 ? 1 << 18 : 100));
      SwapEngine engine(backend.get(), parking, lot.Memory(), SwapCheck::kFull);
      ASSERT_TRUE(engine.StartOut(Group(0, 0), cargo.Out()).ok());
      ASSERT_TRUE(engine.WaitOut(Group(0, 0)).ok());
      cargo.Overwrite();
      ASSERT_TRUE(engine.StartIn(Group(0, 0), cargo.In()).ok());
      ASSERT_TRUE(engine.WaitIn(Group(0, 0)).ok());
      EXPECT_TRUE(cargo.IsAsBefore());
      EXPECT_TRUE(engine.CheckNothingAway().ok());
    }
  }
}

// Many microbatches of several groups under way in both lanes at once, in an order drawn at random.
class Traffic {
 public:
  static constexpr int kGroups = 3;

  Traffic(BackendRig& rig, Dice& dice, int slots, int links)
      : rig_(rig), dice_(dice), slots_(slots) {
    for (int group = 0; group < kGroups; ++group) {
      sizes_.push_back(dice.Roll(0, 5000));
      // The last of them on a drive.
      const int lenders = group == kGroups - 1 ? -1 : links;
      AddSlots(parking_, group, slots, Stripes(dice, sizes_.back(), lenders));
    }
    lot_ = std::make_unique<RigParking>(rig, parking_);
    backend_ = rig.MakeBackend(lot_->Backend(dice.Roll(50, 3000)));
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
    Traveller& traveller = leaving_.emplace_back(Traveller{Group(group, trips_++), Cargo(rig_)});
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
    EXPECT_TRUE(traveller.cargo.IsAsBefore());
    --away_[traveller.group.group.value];
  }

  BackendRig& rig_;
  Dice& dice_;
  const int slots_;
  std::vector<size_t> sizes_;
  WorkerParking parking_;
  std::unique_ptr<RigParking> lot_;
  std::unique_ptr<DeviceBackend> backend_;
  std::vector<Traveller> leaving_, returning_;
  std::unique_ptr<SwapEngine> engine_;
  std::array<int, kGroups> away_ = {};
  int trips_ = 0;
};

TEST_F(SwapRoundTrip, KeepsManyGroupsApartWhileBothLanesRun) {
  Dice dice(17);
  for (int round = 0; round < 8; ++round) {
    Traffic traffic(*rig_, dice, dice.Roll(1, 4), dice.Roll(1, 5));
    for (int step = 0; step < 300; ++step) traffic.Step();
    traffic.Finish();
    EXPECT_GT(traffic.trips(), 30);
  }
}

// To the drive, by both ways; chunks end anywhere.
TEST_F(SwapRoundTrip, BringsEverySizeBackFromADrive) {
  for (const std::vector<size_t>& sizes :
       {std::vector<size_t>{0}, {1}, {4096}, {65, 0, 1}, {3 << 20}, {5, 2 << 20, 63, 4097}}) {
    for (const NvmeIoKind io : {NvmeIoKind::kAny, NvmeIoKind::kThreads}) {
      Cargo cargo[2] = {Cargo(*rig_), Cargo(*rig_)};
      WorkerParking parking;
      for (int group = 0; group < 2; ++group) {
        size_t bytes = 0;
        for (const size_t size : sizes) cargo[group].Add(size, size + group);
        for (const size_t size : sizes) bytes += size;
        AddSlots(parking, group, 1,
                 {{{.tier = Placement::kNvmeSwap}, static_cast<int64_t>(bytes)}});
      }
      RigParking lot(*rig_, parking, {.io = io, .mover = {.buffer = Bytes(1 << 16)}});
      const auto backend = rig_->MakeBackend(
          lot.Backend(parking.bytes.begin()->second > Bytes(20'000) ? 300'001 : 1000));
      SwapEngine engine(backend.get(), parking, lot.Memory(), SwapCheck::kFull);
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
        EXPECT_TRUE(cargo[group].IsAsBefore());
      }
    }
  }
}

TEST_F(SwapRoundTrip, NamesTheGroupWhoseDriveFails) {
  WorkerParking parking;
  AddSlots(parking, 0, 1, {{{.tier = Placement::kNvmeSwap}, 10'000}});
  RigParking lot(*rig_, parking);
  Cargo cargo(*rig_);
  cargo.Add(10'000, 1);
  const auto backend = rig_->MakeBackend(lot.Backend(1 << 20));
  SwapEngine engine(backend.get(), parking, lot.Memory(), SwapCheck::kCheap);
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
TEST_F(SwapRoundTrip, IsAnErrorOfTheGroupWhicheverChunkFails) {
  constexpr int kChunks = 12;  // 300 bytes at each of 2 places, out and back, in chunks of 100
  for (int failing = 0; failing <= kChunks; ++failing) {
    WorkerParking parking;
    AddSlots(parking, 0, 1, {{{.tier = Placement::kHostSwap}, 300}});
    AddSlots(parking, 1, 1, {{{.tier = Placement::kPeerSwap, .lender = DeviceId(1)}, 300}});
    RigParking lot(*rig_, parking);
    Cargo cargo[2] = {Cargo(*rig_), Cargo(*rig_)};  // outlive the engine, which may copy at its end
    for (int group = 0; group < 2; ++group) cargo[group].Add(300, static_cast<uint64_t>(group));
    if (!rig_->FailChunk(failing)) GTEST_SKIP() << "skipped, because nothing fails here on request";
    const auto backend = rig_->MakeBackend(lot.Backend(100));
    SwapEngine engine(backend.get(), parking, lot.Memory(), SwapCheck::kFull);
    absl::Status status;
    for (int group = 0; group < 2 && status.ok(); ++group) {
      status = engine.StartOut(Group(group, 0), cargo[group].Out());
    }
    for (int group = 0; group < 2 && status.ok(); ++group) {
      status = engine.WaitOut(Group(group, 0));
      if (!status.ok()) break;
      status = engine.StartIn(Group(group, 0), cargo[group].In());
    }
    bool is_back[2] = {};
    for (int group = 0; group < 2 && status.ok(); ++group) {
      status = engine.WaitIn(Group(group, 0));
      is_back[group] = status.ok();
    }
    rig_->Mend();
    for (int group = 0; group < 2; ++group) {
      EXPECT_TRUE(!is_back[group] || cargo[group].IsAsBefore());
    }
    EXPECT_EQ(status.ok(), failing == kChunks) << "chunk " << failing << ": " << status;
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    // With an error of a whole device, what is next may fail before its first chunk.
    EXPECT_THAT(std::string(status.message()),
                testing::ContainsRegex(
                    absl::StrCat("^stage 0, group [01], microbatch 0: .*", rig_->Failure())));
    EXPECT_THAT(engine.Table(), HasSubstr("on its way"));
  }
}

// An engine that ends while copies are under way leaves the worker's memory alone from then on.
TEST_F(SwapRoundTrip, MovesNothingAnyMoreOnceTheEngineIsGone) {
  WorkerParking parking;
  AddSlots(parking, 0, 1, {{{.tier = Placement::kHostSwap}, 1000}});
  RigParking lot(*rig_, parking);
  Cargo cargo(*rig_);
  cargo.Add(1000, 1);
  if (!rig_->SlowDown()) GTEST_SKIP() << "skipped, because nothing is slow here on request";
  const auto backend = rig_->MakeBackend(lot.Backend(10));  // 2 s in all
  {
    SwapEngine engine(backend.get(), parking, lot.Memory(), SwapCheck::kFull);
    ASSERT_TRUE(engine.StartOut(Group(0, 0), cargo.Out()).ok());
  }
  rig_->Mend();
  const absl::Span<std::byte> parked =
      lot.Memory().at({.tier = Placement::kHostSwap}).bytes.memory();
  const std::vector<std::byte> there = rig_->Read(parked);
  EXPECT_GT(std::count(there.begin(), there.end(), std::byte{0}), 500);
  EXPECT_EQ(backend->Wait(CopyEvent(0)).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(rig_->Read(parked), there);
}

}  // namespace
}  // namespace siphon
