// What the seam promises (swap/device/device_backend.h), of every kind of backend: this source is
// linked once with each kind's rig.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "swap/memory_checksum.h"
#include "tests/planner/dice.h"
#include "tests/swap/device/backend_rig.h"

namespace siphon {
namespace {

using Where = BackendRig::Where;

CopyPart Part(absl::Span<const std::byte> from, absl::Span<std::byte> to, CopyLinkId link) {
  return {from, to, link};
}

class BackendConformance : public testing::Test {
 protected:
  void SetUp() override {
    SIPHON_SKIP_WITHOUT_RIG();
    rig_ = MakeRig();
  }
  absl::Span<std::byte> Written(Where where, size_t bytes, uint64_t seed) {
    const absl::Span<std::byte> memory = rig_->Take(where, bytes);
    rig_->Write(memory, RigPattern(bytes, seed));
    return memory;
  }
  // The host's link comes first.
  static Where PlaceOf(int link) { return link == 0 ? Where::kHost : Where::kLender; }

  std::unique_ptr<BackendRig> rig_;
};

// A tensor in pieces, each parked somewhere over a link.
struct ParkedPieces {
  std::vector<CopyPart> out;
  std::vector<CopyPart> in;
};

TEST_F(BackendConformance, BringsEveryByteBackOverAnyNumberOfLinks) {
  for (const size_t bytes : {0, 1, 63, 64, 65, 4096, 100'003}) {
    for (const int links : {1, 2, 5}) {
      for (const int64_t chunk : {1 << 20, 777}) {
        const std::unique_ptr<DeviceBackend> backend =
            rig_->MakeBackend({.links = links, .chunk = chunk});
        const absl::Span<std::byte> from = Written(Where::kWorker, bytes, bytes);
        const absl::Span<std::byte> back = rig_->Take(Where::kWorker, bytes);
        ParkedPieces pieces;
        for (int piece = 0; piece < 7; ++piece) {
          const size_t begin = bytes * static_cast<size_t>(piece) / 7;
          const size_t size = bytes * static_cast<size_t>(piece + 1) / 7 - begin;
          const CopyLinkId link(piece % links);
          const absl::Span<std::byte> parked = rig_->Take(PlaceOf(link.value), size);
          pieces.out.push_back(Part(from.subspan(begin, size), parked, link));
          pieces.in.push_back(Part(parked, back.subspan(begin, size), link));
        }
        const CopyEvent out = backend->StartCopy(CopyLane::kOut, pieces.out);
        ASSERT_TRUE(backend->Wait(out).ok()) << backend->Wait(out);
        const CopyEvent in = backend->StartCopy(CopyLane::kIn, pieces.in);
        ASSERT_TRUE(backend->Wait(in).ok()) << backend->Wait(in);
        EXPECT_EQ(rig_->Read(back), RigPattern(bytes, bytes));
        for (const CopyEvent event : {out, in, out}) {
          const absl::StatusOr<bool> complete = backend->Test(event);
          ASSERT_TRUE(complete.ok()) << complete.status();
          EXPECT_TRUE(*complete);
        }
      }
    }
  }
}

TEST_F(BackendConformance, RunsManyCopiesOfBothLanesAndKeepsTheirOrderOnALink) {
  constexpr int kCopies = 100;
  constexpr int kLinks = 3;
  const std::unique_ptr<DeviceBackend> backend =
      rig_->MakeBackend({.links = kLinks, .chunk = 1000});
  // Each copy out overwrites the one before on the same memory: the last one stays.
  std::vector<absl::Span<std::byte>> to, parked, back;
  for (int link = 0; link < kLinks; ++link) to.push_back(rig_->Take(PlaceOf(link), 1500));
  std::vector<CopyEvent> events;
  for (int copy = 0; copy < kCopies; ++copy) {
    std::vector<CopyPart> parts;
    for (int link = 0; link < kLinks; ++link) {
      const absl::Span<std::byte> from =
          Written(Where::kWorker, 1500, static_cast<uint64_t>(kLinks * copy + link));
      parts.push_back(Part(from, to[static_cast<size_t>(link)], CopyLinkId(link)));
    }
    events.push_back(backend->StartCopy(CopyLane::kOut, parts));
    parked.push_back(Written(PlaceOf(copy % kLinks), 100, static_cast<uint64_t>(copy)));
    back.push_back(rig_->Take(Where::kWorker, 100));
    events.push_back(backend->StartCopy(
        CopyLane::kIn, {Part(parked.back(), back.back(), CopyLinkId(copy % kLinks))}));
  }
  for (const CopyEvent event : events) ASSERT_TRUE(backend->Wait(event).ok());
  for (int link = 0; link < kLinks; ++link) {
    EXPECT_EQ(rig_->Read(to[static_cast<size_t>(link)]),
              RigPattern(1500, static_cast<uint64_t>(kLinks * (kCopies - 1) + link)));
  }
  for (size_t copy = 0; copy < kCopies; ++copy) {
    EXPECT_EQ(rig_->Read(back[copy]), RigPattern(100, copy));
  }
}

// Small tensors side by side, in pieces of one byte and more: no byte beside them changes.
TEST_F(BackendConformance, TouchesNoByteBesideItsParts) {
  const std::unique_ptr<DeviceBackend> backend = rig_->MakeBackend({.links = 2, .chunk = 64});
  const absl::Span<std::byte> from = Written(Where::kWorker, 1000, 1);
  const absl::Span<std::byte> to = Written(Where::kLender, 1000, 2);
  std::vector<std::byte> expected = RigPattern(1000, 2);
  const std::vector<std::byte> source = RigPattern(1000, 1);
  std::vector<CopyPart> parts;
  for (size_t begin = 3, size = 1; begin + size < 1000; begin += size + 2, size += 3) {
    parts.push_back(Part(from.subspan(begin, size), to.subspan(begin, size), CopyLinkId(1)));
    std::copy_n(source.begin() + static_cast<int64_t>(begin), size,
                expected.begin() + static_cast<int64_t>(begin));
  }
  ASSERT_GT(parts.size(), 20u);
  ASSERT_TRUE(backend->Wait(backend->StartCopy(CopyLane::kOut, parts)).ok());
  EXPECT_EQ(rig_->Read(to), expected);
}

TEST_F(BackendConformance, RefusesEventsThatItNeverGave) {
  const std::unique_ptr<DeviceBackend> backend = rig_->MakeBackend({});
  EXPECT_EQ(backend->Test(CopyEvent(0)).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(backend->StartCopy(CopyLane::kOut, {}), CopyEvent(0));
  EXPECT_TRUE(backend->Wait(CopyEvent(0)).ok());
  EXPECT_EQ(backend->Wait(CopyEvent(1)).message(), "no copy has the number 1: 1 were started");
  EXPECT_EQ(backend->Wait(CopyEvent(-1)).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(BackendConformance, HasTheChecksumsOfTheHost) {
  const std::unique_ptr<DeviceBackend> backend = rig_->MakeBackend({});
  std::vector<absl::Span<const std::byte>> tensors;
  std::vector<uint64_t> expected;
  const absl::Span<std::byte> all = Written(Where::kWorker, 300'000, 7);
  const std::vector<std::byte> bytes = RigPattern(300'000, 7);
  for (const auto& [begin, size] : std::vector<std::pair<size_t, size_t>>{
           {0, 0}, {0, 1}, {0, 8}, {1, 8}, {3, 13}, {16, 4096}, {8, 299'992}, {5, 299'990}}) {
    tensors.push_back(all.subspan(begin, size));
    expected.push_back(MemoryChecksum(absl::MakeConstSpan(bytes).subspan(begin, size)));
  }
  tensors.push_back(Written(Where::kHost, 1001, 8));
  expected.push_back(MemoryChecksum(RigPattern(1001, 8)));
  const absl::StatusOr<std::vector<uint64_t>> checksums = backend->Checksums(tensors);
  ASSERT_TRUE(checksums.ok()) << checksums.status();
  EXPECT_EQ(*checksums, expected);
}

// Two copies of three chunks each; the n-th chunk of all fails, for every n.
TEST_F(BackendConformance, SaysWhichChunkFailedAndGivesNoWrongBytes) {
  constexpr int kChunks = 6;
  for (int failing = 0; failing <= kChunks; ++failing) {
    const absl::Span<std::byte> from = rig_->Take(Where::kWorker, 300);
    const absl::Span<std::byte> to[] = {rig_->Take(Where::kLender, 300),
                                        rig_->Take(Where::kLender, 300)};
    if (!rig_->FailChunk(failing)) GTEST_SKIP() << "skipped, because nothing fails here on request";
    const std::unique_ptr<DeviceBackend> backend = rig_->MakeBackend({.links = 2, .chunk = 100});
    absl::Status ends[2];
    std::vector<CopyEvent> events;
    for (int copy = 0; copy < 2; ++copy) {
      events.push_back(backend->StartCopy(
          CopyLane::kOut, {Part(from.subspan(0, 200), to[copy].subspan(0, 200), CopyLinkId(0)),
                           Part(from.subspan(200), to[copy].subspan(200), CopyLinkId(1))}));
      ends[copy] = backend->Wait(events.back());
    }
    EXPECT_EQ(ends[0].ok(), failing >= kChunks / 2);
    EXPECT_EQ(ends[0].ok() && ends[1].ok(), failing == kChunks);
    for (int copy = 0; copy < 2; ++copy) {
      EXPECT_EQ(backend->Test(events[static_cast<size_t>(copy)]).status(), ends[copy]);
      if (ends[copy].ok()) continue;
      EXPECT_EQ(ends[copy].code(), absl::StatusCode::kInternal);
      // What comes after it may fail for the same reason, before any chunk.
      const bool first = copy == 0 || ends[0].ok();
      EXPECT_THAT(std::string(ends[copy].message()),
                  testing::ContainsRegex(absl::StrCat(
                      first ? "copy out, link [01], chunk [0-3] \\([0-9]+ bytes\\): " : "", ".*",
                      rig_->Failure())));
    }
    rig_->Mend();
  }
}

// Given up at any moment: each copy has arrived whole, or was given up, and nothing moves any more.
TEST_F(BackendConformance, TouchesNothingOnceItWasAborted) {
  Dice dice(5);
  int arrived = 0;
  int given_up = 0;
  for (int round = 0; round < 20; ++round) {
    const std::unique_ptr<DeviceBackend> backend =
        rig_->MakeBackend({.links = 3, .chunk = dice.Roll(50, 2000)});
    struct Journey {
      CopyEvent event;
      absl::Span<std::byte> to;
      uint64_t seed = 0;
    };
    std::vector<Journey> journeys;
    const int copies = dice.Roll(1, 12);
    for (int copy = 0; copy < copies; ++copy) {
      const CopyLane lane = dice.Roll(0, 1) == 0 ? CopyLane::kOut : CopyLane::kIn;
      const int link = dice.Roll(0, 2);
      const auto bytes = static_cast<size_t>(dice.Roll(1, 30'000));
      Journey journey{.seed = static_cast<uint64_t>(100 * round + copy)};
      const bool out = lane == CopyLane::kOut;
      const absl::Span<std::byte> from =
          Written(out ? Where::kWorker : PlaceOf(link), bytes, journey.seed);
      journey.to = rig_->Take(out ? PlaceOf(link) : Where::kWorker, bytes);
      journey.event = backend->StartCopy(lane, {Part(from, journey.to, CopyLinkId(link))});
      journeys.push_back(journey);
    }
    if (const int waited = dice.Roll(-1, copies - 1); waited >= 0) {
      ASSERT_TRUE(backend->Wait(journeys[static_cast<size_t>(waited)].event).ok());
    }
    backend->Abort();
    for (const Journey& journey : journeys) {
      const absl::Status end = backend->Wait(journey.event);
      if (end.ok()) {
        EXPECT_EQ(rig_->Read(journey.to), RigPattern(journey.to.size(), journey.seed));
      } else {
        EXPECT_EQ(end, absl::CancelledError("the copy was given up"));
      }
      ++(end.ok() ? arrived : given_up);
      rig_->Write(journey.to, RigPattern(journey.to.size(), ~journey.seed));
    }
    // Others go on, over the same links.
    for (int link = 0; link < 3; ++link) {
      const absl::Span<std::byte> from = Written(Where::kWorker, 3000, 1);
      const absl::Span<std::byte> to = rig_->Take(PlaceOf(link), 3000);
      const absl::Status copied =
          backend->Wait(backend->StartCopy(CopyLane::kOut, {Part(from, to, CopyLinkId(link))}));
      EXPECT_TRUE(copied.ok()) << copied;
      EXPECT_EQ(rig_->Read(to), RigPattern(3000, 1));
    }
    for (const Journey& journey : journeys) {
      EXPECT_EQ(rig_->Read(journey.to), RigPattern(journey.to.size(), ~journey.seed));
    }
  }
  EXPECT_GT(arrived, 0);
  EXPECT_GT(given_up, 0);
}

// Of copies that are complete, once.
TEST_F(BackendConformance, TellsWhatWentOverEachLink) {
  const std::unique_ptr<DeviceBackend> backend = rig_->MakeBackend({.links = 3, .chunk = 1000});
  const absl::Span<std::byte> from = Written(Where::kWorker, 2500, 1);
  const absl::Span<std::byte> on_host = rig_->Take(Where::kHost, 2500);
  const absl::Span<std::byte> lent = rig_->Take(Where::kLender, 2500);
  const std::vector<CopyPart> both = {
      Part(from, on_host, CopyLinkId(0)),
      Part(from.subspan(0, 300), lent.subspan(0, 300), CopyLinkId(2)),
      Part(from.subspan(300, 700), lent.subspan(300, 700), CopyLinkId(2))};
  ASSERT_TRUE(backend->Wait(backend->StartCopy(CopyLane::kOut, both)).ok());
  const absl::Span<std::byte> back = rig_->Take(Where::kWorker, 2500);
  ASSERT_TRUE(
      backend->Wait(backend->StartCopy(CopyLane::kIn, {Part(on_host, back, CopyLinkId(0))})).ok());
  const std::vector<CopyLinkUse> uses = backend->TakeUse();
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_EQ(uses[0].copies, 2);
  EXPECT_EQ(uses[0].bytes, Bytes(5000));
  EXPECT_EQ(uses[2].copies, 1);
  EXPECT_EQ(uses[2].bytes, Bytes(1000));
  EXPECT_EQ(uses[1], CopyLinkUse());
  EXPECT_GT(uses[0].time, Nanos(0));
  EXPECT_GT(uses[2].time, Nanos(0));
  EXPECT_EQ(backend->TakeUse(), std::vector<CopyLinkUse>(3));
}

// Copies of a thousand slow chunks each.
class SlowCopiesOfAnyBackend : public BackendConformance {
 protected:
  static constexpr size_t kBytes = 10'000;
  void SetUp() override {
    BackendConformance::SetUp();
    if (rig_ == nullptr) return;
    if (!rig_->SlowDown()) GTEST_SKIP() << "skipped, because nothing is slow here on request";
    from_ = Written(Where::kWorker, kBytes, 1);
    backend_ = rig_->MakeBackend({.links = 2, .chunk = 10});
    for (const CopyLane lane : {CopyLane::kOut, CopyLane::kIn, CopyLane::kOut}) {
      to_.push_back(rig_->Take(Where::kHost, kBytes));
      events_.push_back(backend_->StartCopy(lane, {Part(from_, to_.back(), CopyLinkId(0))}));
    }
  }
  // Bytes that have arrived, at most.
  size_t Arrived() {
    size_t arrived = 0;
    for (const absl::Span<std::byte> to : to_) {
      for (const std::byte byte : rig_->Read(to)) arrived += byte == std::byte{0} ? 0 : 1;
    }
    return arrived;
  }
  absl::Span<std::byte> from_;
  std::vector<absl::Span<std::byte>> to_;
  std::vector<CopyEvent> events_;
  std::unique_ptr<DeviceBackend> backend_;
};

TEST_F(SlowCopiesOfAnyBackend, AreForgottenByTheDestructor) {
  backend_ = nullptr;
  rig_->Mend();
  const size_t arrived = Arrived();
  EXPECT_LT(arrived, kBytes / 10);
  EXPECT_EQ(Arrived(), arrived);
}

TEST_F(SlowCopiesOfAnyBackend, AreGivenUpByAbort) {
  backend_->Abort();
  for (const CopyEvent event : events_) {
    EXPECT_EQ(backend_->Wait(event), absl::CancelledError("the copy was given up"));
  }
  rig_->Mend();
  const size_t arrived = Arrived();
  EXPECT_LT(arrived, kBytes / 10);
  // The same link is free again.
  const absl::Span<std::byte> next = rig_->Take(Where::kHost, 100);
  const absl::Status copied = backend_->Wait(
      backend_->StartCopy(CopyLane::kOut, {Part(from_.subspan(0, 100), next, CopyLinkId(0))}));
  EXPECT_TRUE(copied.ok()) << copied;
  const std::vector<std::byte> first = RigPattern(kBytes, 1);
  EXPECT_EQ(rig_->Read(next), std::vector<std::byte>(first.begin(), first.begin() + 100));
  EXPECT_EQ(Arrived(), arrived);
  backend_->Abort();  // nothing is under way
}

TEST_F(SlowCopiesOfAnyBackend, DoNotHoldUpThoseOverAnotherLink) {
  const absl::Span<std::byte> fast = rig_->Take(Where::kLender, 10);
  EXPECT_TRUE(backend_
                  ->Wait(backend_->StartCopy(CopyLane::kOut,
                                             {Part(from_.subspan(0, 10), fast, CopyLinkId(1))}))
                  .ok());
  const absl::StatusOr<bool> slow = backend_->Test(events_[0]);
  ASSERT_TRUE(slow.ok());
  EXPECT_FALSE(*slow);
  backend_->Abort();
  rig_->Mend();
}

}  // namespace
}  // namespace siphon
