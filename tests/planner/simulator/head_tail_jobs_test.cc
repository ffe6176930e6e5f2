#include "planner/simulator/engine/head_tail_jobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace siphon {
namespace {

HeadTailJob Job(int64_t head, int64_t work, int64_t tail) {
  return {Nanos(head), Nanos(work), Nanos(tail)};
}

TEST(LeastEnd, IsHeadWorkAndTailOfOneJob) {
  EXPECT_EQ(LeastEnd({}), Nanos(0));
  EXPECT_EQ(LeastEnd({Job(3, 4, 5)}), Nanos(12));
  EXPECT_EQ(LeastEnd({Job(3, 0, 5)}), Nanos(8));
}

// From 0 the first job runs; at 2 the second one comes, whose tail is longer, and ends at 5; then
// the first one needs 6 more, and ends at 11, 12 with its tail. The second one's tail ends at 15.
TEST(LeastEnd, LongTailsInterruptOthers) {
  EXPECT_EQ(LeastEnd({Job(0, 8, 1), Job(2, 3, 10)}), Nanos(15));
  EXPECT_EQ(LeastEnd({Job(0, 8, 1), Job(2, 3, 6)}), Nanos(12));
}

TEST(LeastEnd, CountsTimeWithoutWork) {
  EXPECT_EQ(LeastEnd({Job(0, 2, 0), Job(10, 2, 0), Job(10, 3, 0)}), Nanos(15));
}

// Carlier's theorem, by looking at every set.
Nanos OverAllSets(const std::vector<HeadTailJob>& jobs) {
  Nanos most;
  for (uint32_t set = 1; set < (1U << jobs.size()); ++set) {
    Nanos head(INT64_MAX);
    Nanos tail(INT64_MAX);
    Nanos work;
    for (size_t job = 0; job < jobs.size(); ++job) {
      if ((set >> job & 1) == 0) continue;
      head = std::min(head, jobs[job].head);
      tail = std::min(tail, jobs[job].tail);
      work += jobs[job].work;
    }
    most = std::max(most, head + work + tail);
  }
  return most;
}

TEST(LeastEnd, IsTheGreatestOfHeadWorkAndTailOverAllSets) {
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    std::minstd_rand random(seed);
    std::vector<HeadTailJob> jobs;
    const size_t count = 1 + random() % 8;
    while (jobs.size() < count) jobs.push_back(Job(random() % 30, random() % 10, random() % 30));
    ASSERT_EQ(LeastEnd(jobs), OverAllSets(jobs)) << seed;
  }
}

}  // namespace
}  // namespace siphon
