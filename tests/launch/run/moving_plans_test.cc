// Runs that move from the plan of one strategy to that of another between two steps, and on to a
// third: training state comes along from wherever it was to wherever it is to be.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/carried_state.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/parking_job.h"
#include "tests/launch/run/seated_run.h"

namespace siphon {
namespace {

constexpr int64_t kFirstMove = 2;  // behind so many steps
constexpr int64_t kSecondMove = 4;

class MovingPlans : public ParkingJob {
 protected:
  using Bits = std::map<std::string, std::string>;

  PreparedJob Planned(const std::string& strategy, Bytes capacity,
                      const std::string& precision = "fp32") const {
    JobConfig job = Job(4);
    job.train.precision = precision;
    job.memory.strategy = strategy;
    job.memory.capacity = {capacity};
    job.memory.check = "full";
    auto prepared = PrepareJob(job, {});
    EXPECT_TRUE(prepared.ok()) << strategy << ": " << prepared.status();
    return *std::move(prepared);
  }

  // The last checkpoint of a run of six steps that moves twice; and what the host had at most.
  std::pair<Bits, Bytes> Train(const PreparedJob& first, const PlanText& second,
                               const PlanText& third) const {
    const SeatedRun run = RunSeats(first, [&](WorkerSeat& seat) {
      seat.next_plan = [&](int64_t steps) -> std::optional<PlanText> {
        if (steps == kFirstMove) return second;
        if (steps == kSecondMove) return third;
        return std::nullopt;
      };
    });
    for (const auto& end : run.ends) EXPECT_TRUE(end.ok()) << end.status();
    EXPECT_THAT(run.said, testing::Not(testing::HasSubstr("the plan stays")));
    if (!run.ends[0].ok()) return {};
    return {CheckpointBits(run.ends[0]->last_checkpoint), run.ends[0]->host_peak};
  }
};

TEST_F(MovingPlans, KeepTheirBitsFromEveryStrategyToEveryOther) {
  const Bytes capacity = TightJob("auto", 95).memory.capacity[0];
  const std::vector<std::string> strategies = {"optimizer_offload", "d2d_swap", "host_swap",
                                               "weight_offload",    "l2l",      "recompute"};
  std::map<std::string, PreparedJob> plans;
  bool on_host = false, on_device = false;
  for (const std::string& strategy : strategies) {
    plans[strategy] = Planned(strategy, capacity);
    const bool steps = !StagesSteppedOnHost(plans[strategy].plan.memory).empty();
    (steps ? on_host : on_device) = true;
  }
  EXPECT_TRUE(on_host && on_device);
  const auto kept = PrepareJob(Job(4), {});
  ASSERT_TRUE(kept.ok()) << kept.status();
  const Bits expected = Train(*kept, kept->plan_text, kept->plan_text).first;
  ASSERT_FALSE(expected.empty());
  for (size_t first = 0; first < strategies.size(); ++first) {
    for (size_t second = 0; second < strategies.size(); ++second) {
      if (first == second) continue;
      // Back to what was before, or on to the next one.
      const size_t third = (first + second) % 2 == 0 ? first : (second + 1) % strategies.size();
      SCOPED_TRACE(
          absl::StrCat(strategies[first], ", ", strategies[second], ", ", strategies[third]));
      const auto& from = plans[strategies[first]];
      ASSERT_EQ(from.plan_text.mapping.device_of_worker.empty() ||
                    from.plan_text.mapping == IdentityMapping(4),
                true);
      const auto trained =
          Train(from, plans[strategies[second]].plan_text, plans[strategies[third]].plan_text);
      EXPECT_EQ(trained.first, expected);
    }
  }
}

// Masters of what layers compute with in 16 bits are optimizer state, and come along.
TEST_F(MovingPlans, KeepTheirBitsIn16Bits) {
  const Bytes ample = TightJob("auto", 100).memory.capacity[0];
  Bytes tight = ample;
  for (const int64_t percent : {95, 93, 91}) {
    JobConfig job = Job(4);
    job.train.precision = "bf16";
    job.memory.capacity = {Bytes(ample.value / 100 * percent)};
    job.memory.strategy = "d2d_swap";
    const bool lent = PrepareJob(job, {}).ok();
    job.memory.strategy = "optimizer_offload";
    if (lent && PrepareJob(job, {}).ok()) tight = job.memory.capacity[0];
  }
  ASSERT_LT(tight, ample);
  const PreparedJob steps = Planned("optimizer_offload", tight, "bf16");
  const PreparedJob lent = Planned("d2d_swap", tight, "bf16");
  ASSERT_FALSE(StagesSteppedOnHost(steps.plan.memory).empty());
  const Bits expected = Train(lent, lent.plan_text, lent.plan_text).first;
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(Train(steps, lent.plan_text, steps.plan_text).first, expected);
  EXPECT_EQ(Train(lent, steps.plan_text, lent.plan_text).first, expected);
}

// With all that is carried, and no byte more, on the host's books.
TEST_F(MovingPlans, StayWithTheirPlanWhereTheHostHasNoRoomForWhatIsCarried) {
  const Bytes capacity = TightJob("auto", 95).memory.capacity[0];
  PreparedJob from = Planned("optimizer_offload", capacity);
  const PreparedJob to = Planned("d2d_swap", capacity);
  const auto ample = Train(from, to.plan_text, to.plan_text);
  ASSERT_GT(ample.second, Bytes(0));
  from.plan_text.topology.host_memory = ample.second;
  EXPECT_EQ(Train(from, to.plan_text, to.plan_text), ample);
  from.plan_text.topology.host_memory = ample.second - Bytes(1);
  const SeatedRun run = RunSeats(from, [&](WorkerSeat& seat) {
    seat.next_plan = [&](int64_t steps) -> std::optional<PlanText> {
      return steps == kFirstMove ? std::optional(to.plan_text) : std::nullopt;
    };
  });
  ASSERT_TRUE(run.ends[0].ok()) << run.ends[0].status();
  EXPECT_EQ(CheckpointBits(run.ends[0]->last_checkpoint), ample.first);
  EXPECT_THAT(run.said,
              testing::ContainsRegex("warning: the plan stays: .*host memory exhausted: state "
                                     "on its way to another plan need"));
}

}  // namespace
}  // namespace siphon
