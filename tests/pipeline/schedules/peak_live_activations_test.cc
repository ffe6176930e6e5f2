// Activations that each worker keeps at its peak, as published: numbers of (stage, microbatch)
// pairs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/pipeline/schedules/built_schedule.h"

namespace siphon {
namespace {

std::vector<int> PeaksOf(absl::string_view name, const ScheduleShape& shape) {
  return PeakLiveActivations(Built(name, shape));
}

struct PublishedPeaks {
  std::string name;
  int chunks;
  std::vector<int> four_workers;   // 8 microbatches
  std::vector<int> eight_workers;  // 32 microbatches
};

// The first seven follow from the schedules of torch.distributed.pipelining; ZB-H1 and ZB-H2 from
// arXiv:2401.10241, section 2.3: P, and 2 P - 1.
std::vector<PublishedPeaks> Published() {
  const auto everywhere = [](int peak, int workers) { return std::vector<int>(workers, peak); };
  return {
      {"gpipe", 1, everywhere(8, 4), everywhere(32, 8)},
      {"1f1b", 1, {4, 3, 2, 1}, {8, 7, 6, 5, 4, 3, 2, 1}},
      {"interleaved_1f1b", 2, {11, 9, 7, 5}, {23, 21, 19, 17, 15, 13, 11, 9}},
      {"interleaved_zero_bubble", 2, everywhere(8, 4), everywhere(16, 8)},
      {"looped_bfs", 2, everywhere(16, 4), everywhere(64, 8)},
      {"zbv", 2, everywhere(8, 4), everywhere(16, 8)},
      {"dualpipev", 2, everywhere(9, 4), everywhere(17, 8)},
      {"zb_h1", 1, everywhere(4, 4), everywhere(8, 8)},
      {"zb_h2", 1, everywhere(7, 4), everywhere(15, 8)},
  };
}

TEST(PeakLiveActivations, AreThePublishedOnes) {
  for (const PublishedPeaks& published : Published()) {
    SCOPED_TRACE(published.name);
    EXPECT_EQ(
        PeaksOf(published.name, {.workers = 4, .chunks = published.chunks, .microbatches = 8}),
        published.four_workers);
    EXPECT_EQ(
        PeaksOf(published.name, {.workers = 8, .chunks = published.chunks, .microbatches = 32}),
        published.eight_workers);
  }
}

}  // namespace
}  // namespace siphon
