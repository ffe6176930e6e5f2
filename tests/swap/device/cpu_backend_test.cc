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
