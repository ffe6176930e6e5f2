#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/lower_schedule.h"
#include "tests/pipeline/schedules/built_schedule.h"
#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

// Busy slots are whole numbers, so that a fraction is exact: idle slots of all slots.
struct Figures {
  int64_t idle;
  int64_t all;
};
Figures BubbleOf(const SimulatedStep& step) {
  const auto workers = static_cast<int64_t>(step.workers.size());
  int64_t busy = 0;
  for (const WorkerTimeline& timeline : step.workers) {
    for (const Interval& interval : timeline) {
      if (interval.kind == IntervalKind::kBusy) busy += (interval.end - interval.begin).value;
    }
  }
  const int64_t all = workers * step.step_time.value;
  return {all - busy, all};
}

TEST(SimulatedSchedules, BubbleOfGpipeAnd1F1BIsThatOfTheFormula) {
  for (const char* name : {"gpipe", "1f1b"}) {
    for (const int workers : {1, 2, 3, 4, 8, 16}) {
      for (const int microbatches : {1, 2, 5, 8, 32}) {
        const Figures bubble = BubbleOf(
            Simulated(UnitStages(Built(name, {.workers = workers, .microbatches = microbatches}))));
        // (P - 1) / (m + P - 1)
        EXPECT_EQ(bubble.idle * (microbatches + workers - 1), bubble.all * (workers - 1))
            << name << " " << workers << " " << microbatches;
      }
    }
  }
}

TEST(SimulatedSchedules, BubbleOfInterleaved1F1BShrinksWithTheChunks) {
  for (const int chunks : {1, 2, 4}) {
    for (const int workers : {2, 4, 8}) {
      for (const int rounds : {1, 2, 4}) {
        const int microbatches = workers * rounds;
        const Figures bubble = BubbleOf(Simulated(UnitStages(
            Built("interleaved_1f1b",
                  {.workers = workers, .chunks = chunks, .microbatches = microbatches}))));
        // (P - 1) / (V m + P - 1)
        EXPECT_EQ(bubble.idle * (chunks * microbatches + workers - 1), bubble.all * (workers - 1))
            << chunks << " " << workers << " " << microbatches;
      }
    }
  }
}

// Zero-bubble papers (arXiv:2401.10241, 2405.15362) at F = I = W = 1: (P - 1) / (3 V m + P - 1),
// which is 11.1 and 6.8 % with one chunk, 5.9 and 3.5 % with two, for P = 4, m = 8 and P = 8, m
// = 32.
TEST(SimulatedSchedules, BubbleOfTheZeroBubbleSchedulesIsThePublishedOne) {
  for (const char* name : {"zb_h1", "zb_h2", "zbv", "dualpipev", "interleaved_zero_bubble"}) {
    for (const auto& [workers, microbatches] : {std::pair(4, 8), std::pair(8, 32)}) {
      const int chunks = FindSchedule(name)->chunks;
      const Figures bubble = BubbleOf(Simulated(UnitStages(
          Built(name, {.workers = workers, .chunks = chunks, .microbatches = microbatches}))));
      EXPECT_EQ(bubble.idle * (3 * chunks * microbatches + workers - 1), bubble.all * (workers - 1))
          << name << " " << workers;
    }
  }
}

// Idle slots between each worker's first and last action.
std::vector<int64_t> InnerIdle(const SimulatedStep& step) {
  std::vector<int64_t> idle;
  for (const WorkerTimeline& timeline : step.workers) {
    int64_t sum = 0;
    for (size_t place = 1; place < timeline.size(); ++place) {
      if (timeline[place].kind == IntervalKind::kWait) {
        sum += (timeline[place].end - timeline[place].begin).value;
      }
    }
    idle.push_back(sum);
  }
  return idle;
}

TEST(SimulatedSchedules, InnerIdleTimeIsThePublishedOne) {
  for (const auto& [workers, microbatches] : {std::pair(4, 8), std::pair(8, 32)}) {
    const ScheduleShape one{.workers = workers, .microbatches = microbatches};
    const ScheduleShape two{.workers = workers, .chunks = 2, .microbatches = microbatches};
    const SimulatedStep h2 = Simulated(UnitStages(Built("zb_h2", one)));
    const SimulatedStep zbv = Simulated(UnitStages(Built("zbv", two)));
    EXPECT_EQ(h2.inner_idle_fraction, 0);
    EXPECT_EQ(zbv.inner_idle_fraction, 0);
    const SimulatedStep h1 = Simulated(UnitStages(Built("zb_h1", one)));
    std::vector<int64_t> expected;
    for (int worker = 0; worker < workers; ++worker) expected.push_back(workers - 1 - worker);
    EXPECT_EQ(InnerIdle(h1), expected);
  }
}

struct PeakRow {
  std::string name;
  std::vector<int64_t> small;  // P = 4, m = 8
  std::vector<int64_t> large;  // P = 8, m = 32
};

class PeakActivations : public testing::TestWithParam<PeakRow> {};

// In the memory books of a step whose activations are one byte each. The last pair of a compound
// cell runs in sequence, so the books may hold one less than the live ones, never more.
TEST_P(PeakActivations, AreThePublishedOnes) {
  const PeakRow& row = GetParam();
  const int chunks = FindSchedule(row.name)->chunks;
  for (const bool large : {false, true}) {
    const SimulatedStep step = Simulated(UnitStages(Built(
        row.name, {.workers = large ? 8 : 4, .chunks = chunks, .microbatches = large ? 32 : 8})));
    const std::vector<int64_t>& expected = large ? row.large : row.small;
    for (size_t worker = 0; worker < expected.size(); ++worker) {
      EXPECT_EQ(step.peak_live_activations[worker], expected[worker]) << worker;
      EXPECT_LE(step.peak[worker][MemoryKind::kActivations].value, expected[worker]);
      EXPECT_GE(step.peak[worker][MemoryKind::kActivations].value, expected[worker] - 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, PeakActivations,
    testing::Values(PeakRow{"gpipe", {8, 8, 8, 8}, std::vector<int64_t>(8, 32)},
                    PeakRow{"1f1b", {4, 3, 2, 1}, {8, 7, 6, 5, 4, 3, 2, 1}},
                    PeakRow{"interleaved_1f1b", {11, 9, 7, 5}, {23, 21, 19, 17, 15, 13, 11, 9}},
                    PeakRow{"interleaved_zero_bubble", {8, 8, 8, 8}, std::vector<int64_t>(8, 16)},
                    PeakRow{"looped_bfs", {16, 16, 16, 16}, std::vector<int64_t>(8, 64)},
                    PeakRow{"zbv", {8, 8, 8, 8}, std::vector<int64_t>(8, 16)},
                    PeakRow{"dualpipev", {9, 9, 9, 9}, std::vector<int64_t>(8, 17)}),
    [](const auto& info) { return "Of_" + info.param.name; });

}  // namespace
}  // namespace siphon
