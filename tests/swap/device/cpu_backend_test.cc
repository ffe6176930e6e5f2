#include "swap/device/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/planner/dice.h"
#include "tests/swap/jumping_clock.h"

#include "swap/device/shared_ways.h"

namespace siphon {
namespace {

using testing::HasSubstr;

std::vector<std::byte> RandomBytes(size_t bytes, int seed) {
  Dice dice(seed);
  std::vector<std::byte> random(bytes);
  for (std::byte& byte : random) byte = static_cast<std::byte>(dice.Roll(0, 255));
  return random;
}

CpuBackendOptions Unlimited(int links, int64_t chunk) {
  CpuBackendOptions options;
  options.links.resize(links);
  options.chunk = Bytes(chunk);
  return options;
}

// `from` into `to`, cut into `pieces` that go over the links in turn.
std::vector<CopyPart> Parts(absl::Span<const std::byte> from, absl::Span<std::byte> to, int pieces,
                            int links) {
  std::vector<CopyPart> parts;
  for (int piece = 0; piece < pieces; ++piece) {
    const size_t begin = from.size() * piece / pieces;
    const size_t bytes = from.size() * (piece + 1) / pieces - begin;
    parts.push_back(
        {from.subspan(begin, bytes), to.subspan(begin, bytes), CopyLinkId(piece % links)});
  }
  return parts;
}

TEST(CpuBackend, CopiesEveryByteOverAnyNumberOfLinks) {
  for (const size_t bytes : {0, 1, 63, 64, 65, 4096, 100'003}) {
    for (const int links : {1, 2, 5}) {
      for (const int64_t chunk : {1 << 20, 777}) {
        CpuBackend backend(Unlimited(links, chunk));
        const std::vector<std::byte> from = RandomBytes(bytes, 1);
        std::vector<std::byte> away(bytes), back(bytes);
        const CopyEvent out =
            backend.StartCopy(CopyLane::kOut, Parts(from, absl::MakeSpan(away), 7, links));
        ASSERT_TRUE(backend.Wait(out).ok());
        const CopyEvent in =
            backend.StartCopy(CopyLane::kIn, Parts(away, absl::MakeSpan(back), 3, links));
        ASSERT_TRUE(backend.Wait(in).ok());
        EXPECT_EQ(back, from);
        for (const CopyEvent event : {out, in, out}) {
          const absl::StatusOr<bool> complete = backend.Test(event);
          ASSERT_TRUE(complete.ok()) << complete.status();
          EXPECT_TRUE(*complete);
        }
      }
    }
  }
}

TEST(CpuBackend, RunsManyCopiesOfBothLanesAndKeepsTheirOrderOnALink) {
  constexpr int kCopies = 200;
  CpuBackend backend(Unlimited(3, 1000));
  // Each copy out overwrites the one before on the same memory: the last one stays.
  std::vector<std::vector<std::byte>> from;
  for (int copy = 0; copy < kCopies; ++copy) from.push_back(RandomBytes(3000, copy));
  const std::vector<std::byte> parked = RandomBytes(kCopies * 100, 7);
  std::vector<std::byte> to(3000), back(kCopies * 100);
  std::vector<CopyEvent> events;
  for (int copy = 0; copy < kCopies; ++copy) {
    events.push_back(
        backend.StartCopy(CopyLane::kOut, Parts(from[copy], absl::MakeSpan(to), 3, 3)));
    events.push_back(backend.StartCopy(
        CopyLane::kIn, {{absl::MakeConstSpan(parked).subspan(copy * 100, 100),
                         absl::MakeSpan(back).subspan(copy * 100, 100), CopyLinkId(copy % 3)}}));
  }
  for (const CopyEvent event : events) ASSERT_TRUE(backend.Wait(event).ok());
  EXPECT_EQ(to, from.back());
  EXPECT_EQ(back, parked);
}

TEST(CpuBackend, HoldsALinkToItsRateTimesTheScale) {
  const auto time = std::make_shared<JumpingClock>();
  CpuBackendOptions options = Unlimited(1, 1000);
  // 2 GB/s at a scale of one half: a byte a nanosecond.
  options.links[0] = {BytesPerSecond(2'000'000'000), Nanos(50)};
  options.scale = 0.5;
  options.clock = ClockOf(time);
  CpuBackend backend(options);
  const std::vector<std::byte> from = RandomBytes(12'345, 1);
  std::vector<std::byte> to(from.size());
  const int64_t begin = time->Now().value;
  ASSERT_TRUE(
      backend.Wait(backend.StartCopy(CopyLane::kOut, Parts(from, absl::MakeSpan(to), 4, 1))).ok());
  EXPECT_EQ(time->Now().value - begin, 50 + 12'345);
  EXPECT_EQ(to, from);
}

TEST(CpuBackend, TakesAsLongAsTheSlowestLinkOfACopy) {
  const auto time = std::make_shared<JumpingClock>();
  CpuBackendOptions options = Unlimited(3, 64);
  options.links[1].rate = BytesPerSecond(1'000'000'000);
  options.links[2].rate = BytesPerSecond(500'000'000);
  options.clock = ClockOf(time);
  CpuBackend backend(options);
  const std::vector<std::byte> from = RandomBytes(3000, 1);
  std::vector<std::byte> to(from.size());
  const int64_t begin = time->Now().value;
  ASSERT_TRUE(
      backend.Wait(backend.StartCopy(CopyLane::kIn, Parts(from, absl::MakeSpan(to), 3, 3))).ok());
  EXPECT_EQ(time->Now().value - begin, 2000);
  EXPECT_EQ(to, from);
}

// The drive takes what it wants of each chunk, and memory does not wait for it.
TEST(CpuBackend, GivesADriveThreadsOfItsOwn) {
  std::atomic<bool> memory_done = false;
  std::atomic<bool> waited = false;
  std::atomic<int64_t> to_drive = 0;
  CpuBackendOptions options = Unlimited(2, 100);
  options.drive = DriveLink{CopyLinkId(1), [&](CopyLane lane, absl::Span<const CopyPart> parts) {
                              EXPECT_EQ(lane, CopyLane::kOut);
                              while (!memory_done) std::this_thread::yield();
                              waited = true;
                              for (const CopyPart& part : parts) {
                                EXPECT_EQ(part.to.offset(), 5000 + to_drive);
                                to_drive += static_cast<int64_t>(part.to.size());
                              }
                              return absl::OkStatus();
                            }};
  CpuBackend backend(options);
  const std::vector<std::byte> from = RandomBytes(1000, 1);
  std::vector<std::byte> to(1000);
  const CopySide<std::byte> on_drive(DriveRange{5000, 1000});
  const CopyEvent drive =
      backend.StartCopy(CopyLane::kOut, {{absl::MakeConstSpan(from), on_drive, CopyLinkId(1)}});
  ASSERT_TRUE(
      backend.Wait(backend.StartCopy(CopyLane::kOut, Parts(from, absl::MakeSpan(to), 3, 1))).ok());
  EXPECT_FALSE(waited);
  memory_done = true;
  EXPECT_TRUE(backend.Wait(drive).ok());
  EXPECT_EQ(to_drive, 1000);
  EXPECT_EQ(to, from);
}

TEST(CpuBackend, HoldsADriveToItsRateAndPassesOnItsErrors) {
  const auto time = std::make_shared<JumpingClock>();
  CpuBackendOptions options = Unlimited(1, 100);
  options.links[0] = {BytesPerSecond(500'000'000), Nanos(70)};
  options.clock = ClockOf(time);
  absl::Status answer;
  options.drive =
      DriveLink{CopyLinkId(0), [&](CopyLane, absl::Span<const CopyPart>) { return answer; }};
  CpuBackend backend(options);
  const std::vector<std::byte> from(1000);
  const CopySide<std::byte> on_drive(DriveRange{0, 1000});
  const int64_t begin = time->Now().value;
  const auto out = [&] {
    return backend.Wait(backend.StartCopy(CopyLane::kOut, {{absl::MakeConstSpan(from),  //
                                                            on_drive, CopyLinkId(0)}}));
  };
  EXPECT_TRUE(out().ok());
  EXPECT_EQ(time->Now().value - begin, 70 + 2000);
  answer = absl::InternalError("drive file x: Input/output error");
  EXPECT_EQ(out(), answer);
}

TEST(CpuBackend, SaysWhichChunkFailedAndGoesOnWithOtherCopies) {
  constexpr int kChunks = 6;  // 2 copies over 2 links, with chunks of 100: 2 + 1 each
  for (int failing = 0; failing <= kChunks; ++failing) {
    std::atomic<int> chunks = 0;
    CpuBackendOptions options = Unlimited(2, 100);
    options.before_chunk = [&](const CopyChunk&) {
      return chunks++ == failing ? absl::UnavailableError("wire cut") : absl::OkStatus();
    };
    CpuBackend backend(options);
    const std::vector<std::byte> from = RandomBytes(300, 1);
    std::vector<std::byte> to(300), again(300);
    const auto parts = [&](std::vector<std::byte>& into) {
      std::vector<CopyPart> cut = Parts(from, absl::MakeSpan(into), 1, 1);
      const CopyPart whole = cut.front();
      return std::vector<CopyPart>{
          {whole.from.subspan(0, 200), whole.to.subspan(0, 200), CopyLinkId(0)},
          {whole.from.subspan(200), whole.to.subspan(200), CopyLinkId(1)}};
    };
    const CopyEvent first = backend.StartCopy(CopyLane::kOut, parts(to));
    const absl::Status one = backend.Wait(first);
    const absl::Status two = backend.Wait(backend.StartCopy(CopyLane::kOut, parts(again)));
    EXPECT_EQ(one.ok(), failing >= kChunks / 2);
    EXPECT_TRUE(two.ok() || one.ok());
    EXPECT_EQ(one.ok() && two.ok(), failing == kChunks);
    EXPECT_TRUE(!one.ok() || to == from);
    EXPECT_TRUE(!two.ok() || again == from);
    for (const absl::Status& status : {one, two}) {
      if (status.ok()) continue;
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
      EXPECT_THAT(std::string(status.message()),
                  testing::MatchesRegex("copy out, link [01], chunk [0-3] \\(100 bytes\\): "
                                        "wire cut"));
    }
    EXPECT_EQ(backend.Test(first).status(), one);
  }
}

TEST(CpuBackend, RefusesEventsThatItNeverGave) {
  CpuBackend backend(Unlimited(1, 100));
  EXPECT_EQ(backend.Test(CopyEvent(0)).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(backend.StartCopy(CopyLane::kOut, {}), CopyEvent(0));
  EXPECT_TRUE(backend.Wait(CopyEvent(0)).ok());
  EXPECT_EQ(backend.Wait(CopyEvent(1)).message(), "no copy has the number 1: 1 were started");
  EXPECT_EQ(backend.Wait(CopyEvent(-1)).code(), absl::StatusCode::kInvalidArgument);
}

// Copies that would take hours.
class SlowCopies : public testing::Test {
 protected:
  SlowCopies() {
    CpuBackendOptions options = Unlimited(2, 10);
    options.links[0].rate = BytesPerSecond(1);
    options.before_chunk = [this](const CopyChunk&) { return ++chunks_, absl::OkStatus(); };
    backend_ = std::make_unique<CpuBackend>(options);
    // Each has memory of its own to write to.
    for (const CopyLane lane : {CopyLane::kOut, CopyLane::kIn, CopyLane::kOut}) {
      const auto to = absl::MakeSpan(to_).subspan(events_.size() * from_.size(), from_.size());
      events_.push_back(backend_->StartCopy(lane, Parts(from_, to, 1, 1)));
    }
  }
  const std::vector<std::byte> from_ = std::vector<std::byte>(10'000);
  std::vector<std::byte> to_ = std::vector<std::byte>(30'000);
  std::atomic<int> chunks_ = 0;
  std::unique_ptr<CpuBackend> backend_;
  std::vector<CopyEvent> events_;
};

TEST_F(SlowCopies, AreForgottenByTheDestructor) {
  backend_ = nullptr;
  EXPECT_LE(chunks_, 2);
}

TEST_F(SlowCopies, AreGivenUpByAbort) {
  std::vector<std::byte> fast(100);
  backend_->Abort();
  for (const CopyEvent event : events_) {
    EXPECT_EQ(backend_->Wait(event), absl::CancelledError("the copy was given up"));
  }
  const int chunks = chunks_;
  EXPECT_LE(chunks, 2);
  // The link is free again, and other copies go on.
  const CopyEvent next = backend_->StartCopy(
      CopyLane::kOut,
      {{absl::MakeConstSpan(from_).subspan(0, 100), absl::MakeSpan(fast), CopyLinkId(1)}});
  EXPECT_TRUE(backend_->Wait(next).ok());
  EXPECT_EQ(chunks_, chunks + 10);
  backend_->Abort();  // nothing is under way
}

TEST_F(SlowCopies, DoNotHoldUpThoseOverAnotherLink) {
  std::vector<std::byte> fast(100);
  const CopyEvent next = backend_->StartCopy(
      CopyLane::kOut,
      {{absl::MakeConstSpan(from_).subspan(0, 100), absl::MakeSpan(fast), CopyLinkId(1)}});
  EXPECT_TRUE(backend_->Wait(next).ok());
  const absl::StatusOr<bool> slow = backend_->Test(events_[0]);
  ASSERT_TRUE(slow.ok());
  EXPECT_FALSE(*slow);
}

// Two workers over one uplink of a megabyte a second, 20,000 bytes each: whatever the machine does,
// both together take 40 ms.
TEST(CpuBackends, ShareAWayAtItsRate) {
  constexpr size_t kBytes = 20'000;
  std::vector<int64_t> memory(static_cast<size_t>(SharedWays::BytesFor(1).value) / 8);
  const SharedWays ways(
      {{BytesPerSecond(1'000'000)}},
      absl::MakeSpan(reinterpret_cast<std::byte*>(memory.data()), memory.size() * sizeof(int64_t)));
  CpuBackendOptions options{.links = {{BytesPerSecond(1'000'000), Nanos(0)}}};
  options.book = [ways](CopyLane, CopyLinkId, Bytes bytes, Nanos begin) {
    return ways.Book({SharedWayId(0)}, bytes, begin);
  };
  const Nanos begin = options.clock.now();
  CpuBackend first(options);
  CpuBackend second(options);
  const std::vector<std::byte> from(kBytes, std::byte{7});
  std::vector<std::byte> to_first(kBytes), to_second(kBytes);
  const CopyEvent one = first.StartCopy(
      CopyLane::kOut, {{absl::MakeConstSpan(from), absl::MakeSpan(to_first), CopyLinkId(0)}});
  const CopyEvent other = second.StartCopy(
      CopyLane::kOut, {{absl::MakeConstSpan(from), absl::MakeSpan(to_second), CopyLinkId(0)}});
  ASSERT_TRUE(first.Wait(one).ok());
  ASSERT_TRUE(second.Wait(other).ok());
  EXPECT_GE(options.clock.now() - begin, Nanos(40'000'000));
  EXPECT_EQ(to_first, from);
  EXPECT_EQ(to_second, from);
}

}  // namespace
}  // namespace siphon
