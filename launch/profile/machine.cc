#include "launch/profile/machine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "swap/device/stream_copy.h"

namespace siphon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kExchanges = 200;
constexpr int64_t kUsualMessage = int64_t{1} << 20;  // where no message's size is known
constexpr int kCopies = 15;

int64_t NanosSince(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

int64_t MedianOf(std::vector<int64_t> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// Half a round trip between two threads that sleep while they wait.
Nanos Latency() {
  std::atomic<int> turn{0};
  std::thread partner([&turn] {
    for (int exchange = 0; exchange < kExchanges; ++exchange) {
      turn.wait(2 * exchange);
      turn.store(2 * exchange + 2);
      turn.notify_one();
    }
  });
  std::vector<int64_t> round_trips;
  for (int exchange = 0; exchange < kExchanges; ++exchange) {
    const Clock::time_point begin = Clock::now();
    turn.store(2 * exchange + 1);
    turn.notify_one();
    turn.wait(2 * exchange + 1);
    round_trips.push_back(NanosSince(begin));
  }
  partner.join();
  return Nanos(MedianOf(std::move(round_trips)) / 2);
}

BytesPerSecond CopyRate(size_t message_bytes) {
  std::vector<std::byte> source(message_bytes);
  std::vector<std::byte> ring(message_bytes);
  std::vector<std::byte> target(message_bytes);
  std::vector<int64_t> times;
  for (int copy = 0; copy < kCopies; ++copy) {
    source[0] = static_cast<std::byte>(copy);
    const Clock::time_point begin = Clock::now();
    std::memcpy(ring.data(), source.data(), message_bytes);
    std::memcpy(target.data(), ring.data(), message_bytes);
    times.push_back(std::max<int64_t>(1, NanosSince(begin)));
    if (target[0] != source[0]) return BytesPerSecond(0);  // keeps the copies from being left out
  }
  return BytesPerSecond(static_cast<int64_t>(2 * static_cast<double>(message_bytes) * 1e9 /
                                             static_cast<double>(MedianOf(std::move(times)))));
}

// Chunk by chunk through more than caches hold, as workers move tensors.
BytesPerSecond SwapRate() {
  constexpr size_t kChunk = size_t{8} << 20;
  constexpr size_t kChunks = 8;
  const std::vector<std::byte> source(kChunks * kChunk, std::byte{1});
  std::vector<std::byte> target(kChunks * kChunk);
  std::vector<int64_t> times;
  for (int copy = 0; copy < kCopies; ++copy) {
    const size_t chunk = static_cast<size_t>(copy) % kChunks * kChunk;
    const Clock::time_point begin = Clock::now();
    StreamCopy(absl::MakeConstSpan(source).subspan(chunk, kChunk),
               absl::MakeSpan(target).subspan(chunk, kChunk));
    times.push_back(std::max<int64_t>(1, NanosSince(begin)));
  }
  return BytesPerSecond(static_cast<int64_t>(static_cast<double>(kChunk) * 1e9 /
                                             static_cast<double>(MedianOf(std::move(times)))));
}

}  // namespace

std::string ProcessorName() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    return std::string(absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1)));
  }
  return "this machine";
}

std::string NameWithThreads(int threads) {
  return absl::StrCat(ProcessorName(), ", ", threads, threads == 1 ? " thread" : " threads");
}

TransportCosts MeasureHandover(Bytes message) {
  const int64_t bytes = message.value > 0 ? message.value : kUsualMessage;
  return {.latency = Latency(),
          .copy_rate = CopyRate(static_cast<size_t>(bytes)),
          .swap_rate = SwapRate()};
}

}  // namespace siphon
