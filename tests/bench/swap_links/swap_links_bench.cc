// How well the CPU backend holds links to their rates by the real clock: copies over several links
// of different rates, one behind the other, against their time on paper; and how fast it copies
// where links have no limit. Checks every byte. Fails when a copy is faster than its links, or the
// median of the runs more than 5 % slower.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/status.h"
#include "swap/device/cpu_backend.h"
#include "tests/bench/machine_name.h"

namespace siphon {
namespace {

constexpr int kRepeats = 9;
constexpr double kMostSlowdown = 1.05;
constexpr int64_t kMegabyte = 1'000'000;

struct LinkCase {
  const char* name;
  std::vector<int64_t> megabytes_per_second;  // of each link; 0: no limit
  std::vector<int64_t> kilobytes;             // of each copy over each link
  int copies = 1;                             // one behind the other
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Seconds that the copies take by their links' rates.
double OnPaper(const LinkCase& run) {
  double slowest = 0;
  for (size_t link = 0; link < run.kilobytes.size(); ++link) {
    if (run.megabytes_per_second[link] == 0) continue;
    slowest = std::max(slowest, static_cast<double>(run.kilobytes[link]) / 1000 /
                                    static_cast<double>(run.megabytes_per_second[link]));
  }
  return slowest * run.copies;
}

double Measured(const LinkCase& run) {
  CpuBackendOptions options;
  options.chunk = Bytes(64 << 10);
  size_t bytes = 0;
  for (size_t link = 0; link < run.kilobytes.size(); ++link) {
    options.links.push_back({.rate = BytesPerSecond(run.megabytes_per_second[link] * kMegabyte)});
    bytes += static_cast<size_t>(run.kilobytes[link]) * 1000;
  }
  CpuBackend backend(std::move(options));
  std::vector<std::byte> from(bytes), to(bytes);
  for (size_t byte = 0; byte < bytes; ++byte) from[byte] = static_cast<std::byte>(byte * 31);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<CopyEvent> events;
  for (int copy = 0; copy < run.copies; ++copy) {
    std::vector<CopyPart> parts;
    size_t at = 0;
    for (size_t link = 0; link < run.kilobytes.size(); ++link) {
      const size_t part = static_cast<size_t>(run.kilobytes[link]) * 1000;
      parts.push_back({absl::MakeConstSpan(from).subspan(at, part),
                       absl::MakeSpan(to).subspan(at, part), CopyLinkId(static_cast<int>(link))});
      at += part;
    }
    events.push_back(backend.StartCopy(CopyLane::kOut, std::move(parts)));
  }
  for (const CopyEvent event : events) {
    SIPHON_CHECK(backend.Wait(event).ok(), "copies of this bench do not fail");
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  SIPHON_CHECK(to == from, "copies bring every byte");
  return time.count();
}

int Main() {
  // In small, DGX-1V's: 12 GB/s to the host, NVLinks of 25 and 50 GB/s.
  const std::vector<LinkCase> cases = {
      {"one link", {200}, {4000}, 5},
      {"host and 4 lenders", {12, 25, 25, 50, 50}, {240, 500, 500, 1000, 1000}, 5},
      {"many small copies", {50, 50}, {10, 10}, 200},
      {"no limit", {0}, {64'000}, 4},
  };
  std::cout << MachineName() << ", median of " << kRepeats << "\n";
  bool good = true;
  for (const LinkCase& run : cases) {
    std::vector<double> times;
    for (int repeat = 0; repeat < kRepeats; ++repeat) times.push_back(Measured(run));
    const double paper = OnPaper(run);
    const double median = Median(times);
    double megabytes = 0;
    for (const int64_t kilobytes : run.kilobytes) megabytes += static_cast<double>(kilobytes) / 1e3;
    std::cout << absl::StrFormat("%-20s %8.2f ms, on paper %8.2f ms, %7.0f MB/s", run.name,
                                 median * 1e3, paper * 1e3, megabytes * run.copies / median);
    if (paper > 0) {
      std::cout << absl::StrFormat(", ratio %.4f", median / paper);
      good = good && *std::min_element(times.begin(), times.end()) >= paper &&
             median <= paper * kMostSlowdown;
    }
    std::cout << "\n";
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace siphon

int main() { return siphon::Main(); }
