// How much processor time the search for a device map takes (it has one thread; other load on the
// machine does not count): the 10,080 maps of a DGX-1 with V100 under several demands, 16 devices
// on one switch, and what a random mesh of 16 gets within a number of partial maps. Prints machine,
// results and medians, and fails when a limit is passed or an optimum is not proven; of the mesh,
// if it takes five seconds or its bound is above what was found.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/mapping/map_devices.h"
#include "tests/bench/machine_name.h"
#include "tests/planner/mapping/mapping_testing.h"

namespace siphon {
namespace {

constexpr int kRepeats = 5;
constexpr int64_t kGiga = 1'000'000'000;
constexpr double kMostMilliseconds = 50;
// Of the mesh without symmetry, which is given up: what a user waits for without asking why.
constexpr double kMostMeshMilliseconds = 5'000;

struct Outcome {
  FoundMap found;
  double milliseconds = 0;  // median
};

Outcome Measure(const std::string& what, const Topology& topology,
                const DeviceMapRequest& request) {
  std::vector<double> times;
  Outcome outcome;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const std::clock_t begin = std::clock();
    const absl::StatusOr<FoundMap> found = MapDevices(topology, request);
    times.push_back(1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    if (!found.ok()) {
      std::cerr << found.status() << "\n";
      std::exit(1);
    }
    outcome.found = *found;
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  outcome.milliseconds = times[kRepeats / 2];
  const FoundMap& found = outcome.found;
  std::cout << absl::StreamFormat(
      "%-44s %8.2f ms %7d parts %6d maps  %s, bound %s, %s, map %s\n", what, outcome.milliseconds,
      found.parts, found.evaluations, FormatNanos(found.cost.time), FormatNanos(found.bound.time),
      found.proven ? "proven" : "not proven", absl::StrJoin(Numbers(found.mapping), ","));
  return outcome;
}

bool Kept(const Outcome& outcome) {
  return outcome.found.proven && outcome.milliseconds < kMostMilliseconds;
}

// [worker]: gigabytes that it parks, or lends where they are negative.
DeviceMapRequest Request(const std::vector<int>& gigabytes) {
  DeviceMapRequest request{.neighbours = PipelineNeighbours(static_cast<int>(gigabytes.size()), 1)};
  for (const int bytes : gigabytes) {
    request.demand.workers.push_back(
        {Bytes(std::max(0, bytes) * kGiga), Bytes(std::max(0, -bytes) * kGiga)});
  }
  return request;
}

int Main() {
  std::cout << MachineName() << ", processor time, median of " << kRepeats << "\n";
  const Topology dgx1 = Dgx1V();
  bool kept = true;
  const auto check = [&](const std::string& what, const Topology& topology,
                         const DeviceMapRequest& request) {
    const bool good = Kept(Measure(what, topology, request));
    kept = kept && good;
  };
  check("DGX-1V, 1F1B: 7 5 3 1 to 1 3 5 7", dgx1, Request({7, 5, 3, 1, -1, -3, -5, -7}));
  check("DGX-1V, equal: 4 x 2 to 4 x 4", dgx1, Request({2, 2, 2, 2, -4, -4, -4, -4}));
  check("DGX-1V, scarce: 12 4 0 0 to 4 x 4", dgx1, Request({12, 4, 0, 0, -4, -4, -4, -4}));
  check("DGX-1V, one owner: 20 to 7 x 4", dgx1, Request({20, -4, -4, -4, -4, -4, -4, -4}));
  check("DGX-1V, owners last: 1 3 5 7 to them", dgx1, Request({-7, -5, -3, -1, 1, 3, 5, 7}));
  check("DGX-1V, owners between lenders", dgx1, Request({-5, 3, -4, 6, -3, 2, -6, 4}));
  check("DGX-1V, too much: 9 x 4 to 2 x 4", dgx1, Request({9, 9, 9, 9, -2, -2, -2, -2}));
  std::vector<int> half(16, 5);
  std::fill(half.begin() + 8, half.end(), -6);
  check("16 devices on one switch",
        NvswitchTopology(16, BytesPerSecond(145'600'000'000), Nanos(2000)), Request(half));
  std::mt19937 random(1);
  DeviceMapRequest bounded = Request(half);
  bounded.most_parts = 20'000;
  const Outcome mesh = Measure("random mesh of 16, at most 20,000 parts",
                               RandomMesh(16, 1, kDgx1WireRate, random), bounded);
  const bool mesh_kept =
      mesh.milliseconds < kMostMeshMilliseconds && mesh.found.bound <= mesh.found.cost;
  std::cout << absl::StreamFormat("proven within %.0f ms: %s\n", kMostMilliseconds,
                                  kept ? "kept" : "NOT KEPT")
            << absl::StreamFormat("mesh within %.0f ms, its bound no more than found: %s\n",
                                  kMostMeshMilliseconds, mesh_kept ? "kept" : "NOT KEPT");
  return kept && mesh_kept ? 0 : 1;
}

}  // namespace
}  // namespace siphon

int main() { return siphon::Main(); }
