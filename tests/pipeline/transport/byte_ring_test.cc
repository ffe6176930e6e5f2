#include "pipeline/transport/byte_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "pipeline/transport/doorbell.h"
#include "planner/keyed_hash.h"

namespace siphon {
namespace {

struct alignas(64) SmallRing {
  RingHeader header{};
  std::byte data[64]{};
};

std::vector<std::byte> Counting(size_t from, size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t index = 0; index < count; ++index)
    bytes[index] = static_cast<std::byte>(from + index);
  return bytes;
}

TEST(ByteRing, WritesNoMoreThanThereIsRoomAndReadsNoMoreThanThereIs) {
  auto memory = std::make_unique<SmallRing>();
  ByteRing producer(&memory->header, 64), consumer(&memory->header, 64);
  EXPECT_EQ(producer.Write(Counting(0, 50)), 50);
  EXPECT_EQ(producer.Write(Counting(50, 50)), 14);
  EXPECT_EQ(producer.Write(Counting(64, 1)), 0);
  std::vector<std::byte> read(100);
  EXPECT_EQ(consumer.Read(absl::MakeSpan(read)), 64);
  EXPECT_EQ(consumer.Read(absl::MakeSpan(read)), 0);
  read.resize(64);
  EXPECT_TRUE(read == Counting(0, 64));
}

TEST(ByteRing, GoesRoundTheEndOfItsMemory) {
  auto memory = std::make_unique<SmallRing>();
  ByteRing producer(&memory->header, 64), consumer(&memory->header, 64);
  size_t next = 0;
  for (int round = 0; round < 40;
       ++round) {  // 37 and 64 have no common divisor: every offset occurs
    const std::vector<std::byte> sent = Counting(next, 37);
    std::vector<std::byte> read(37);
    EXPECT_EQ(producer.Write(sent), 37);
    EXPECT_EQ(consumer.Read(absl::MakeSpan(read)), 37);
    EXPECT_TRUE(read == sent) << round;
    next += 37;
  }
}

TEST(ByteRing, SkipsWithoutCopying) {
  auto memory = std::make_unique<SmallRing>();
  ByteRing producer(&memory->header, 64), consumer(&memory->header, 64);
  EXPECT_EQ(producer.Write(Counting(0, 20)), 20);
  EXPECT_EQ(consumer.Skip(15), 15);
  std::vector<std::byte> read(5);
  EXPECT_EQ(consumer.Read(absl::MakeSpan(read)), 5);
  EXPECT_TRUE(read == Counting(15, 5));
  EXPECT_EQ(consumer.Skip(1), 0);
}

// A producer and a consumer that sleep at every full or empty ring and wake each other: a lost
// wake-up would show as a pause of a second each, and a lost or torn byte as a difference.
TEST(Doorbell, WakesWhoeverSleepsOnAFullOrEmptyRing) {
  constexpr int64_t kTotal = 20'000;
  constexpr std::chrono::seconds kForEver{1};
  auto memory = std::make_unique<SmallRing>();
  Doorbell of_producer{}, of_consumer{};
  std::vector<std::byte> sent = Counting(3, kTotal), received(kTotal);
  std::thread producer([&] {
    ByteRing ring(&memory->header, 64);
    for (int64_t done = 0; done < kTotal;) {
      const absl::Span<const std::byte> rest =
          absl::MakeConstSpan(sent).subspan(static_cast<size_t>(done));
      int64_t written = ring.Write(rest);
      if (written == 0) {
        const uint32_t prepared = PrepareToSleep(of_producer);
        written = ring.Write(rest);
        written == 0 ? Sleep(of_producer, prepared, kForEver) : StayAwake(of_producer);
      }
      if (written > 0) Ring(of_consumer);
      done += written;
    }
  });
  ByteRing ring(&memory->header, 64);
  for (int64_t done = 0; done < kTotal;) {
    const absl::Span<std::byte> rest = absl::MakeSpan(received).subspan(static_cast<size_t>(done));
    int64_t read = ring.Read(rest);
    if (read == 0) {
      const uint32_t prepared = PrepareToSleep(of_consumer);
      read = ring.Read(rest);
      read == 0 ? Sleep(of_consumer, prepared, kForEver) : StayAwake(of_consumer);
    }
    if (read > 0) Ring(of_producer);
    done += read;
  }
  producer.join();
  EXPECT_TRUE(received == sent);
}

}  // namespace
}  // namespace siphon
