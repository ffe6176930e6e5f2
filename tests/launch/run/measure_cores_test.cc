#include "launch/run/layer_profile/measure_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstddef>
#include <cstdint>

#include "launch/run/layer_profile/layer_rounds.h"
#include "tests/launch/run/small_job.h"

namespace siphon {
namespace {

cpu_set_t AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return set;
}

CoreSharing Measured(int workers) {
  JobConfig job = SmallJob("mlp", "unused");
  job.checkpoint.every_steps = 0;
  job.pipeline.stages = workers;
  const auto prepared = PrepareJob(job, {});
  EXPECT_TRUE(prepared.ok()) << prepared.status();
  if (!prepared.ok()) return {};
  const auto batch = LayerRounds::FirstBatch(*prepared);
  EXPECT_TRUE(batch.ok()) << batch.status();
  if (!batch.ok()) return {};
  const auto cores = MeasureCores(*prepared, *batch, /*rounds=*/2);
  EXPECT_TRUE(cores.ok()) << cores.status();
  return cores.value_or(CoreSharing{});
}

TEST(MeasureCores, GivesEachNumberOfWorkersAtMostACoreEach) {
  const cpu_set_t allowed = AllowedCores();
  const CoreSharing cores = Measured(/*workers=*/2);
  ASSERT_EQ(cores.size(), static_cast<size_t>(CPU_COUNT(&allowed)));
  EXPECT_EQ(cores[0], 1000);
  for (size_t running = 1; running <= cores.size(); ++running) {
    EXPECT_GE(cores[running - 1], 1);
    EXPECT_LE(cores[running - 1], static_cast<int64_t>(1000 * running));
  }
  // From two on, each worker gets as much as each of the two that were measured.
  for (size_t running = 3; running <= cores.size(); ++running) {
    EXPECT_NEAR(static_cast<double>(cores[running - 1]),
                static_cast<double>(cores[1]) * static_cast<double>(running) / 2,
                static_cast<double>(running));
  }
}

TEST(MeasureCores, KnowsOfNobodyWhoWouldDisturbAJobOfOneWorker) {
  const cpu_set_t allowed = AllowedCores();
  CoreSharing undisturbed;
  for (int cores = 1; cores <= CPU_COUNT(&allowed); ++cores) undisturbed.push_back(1000 * cores);
  EXPECT_EQ(Measured(/*workers=*/1), undisturbed);
}

TEST(MeasureCores, CountsTheCoresThatThisProcessMayUse) {
  const cpu_set_t allowed = AllowedCores();
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &allowed)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const CoreSharing cores = Measured(/*workers=*/2);
  EXPECT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_EQ(cores, CoreSharing{1000});
}

}  // namespace
}  // namespace siphon
