// Schedules of one stage a worker: every kind of model, every number of stages and microbatches,
// five clipped steps: the bits of one process.

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "partitioner/partition_model.h"
#include "tests/conformance/conformance.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/support/tiny_models.h"

namespace siphon {
namespace {

constexpr int kBlocks = 6;  // 8 layers, so that 8 stages have one each

// Named, so that a test's name says what it trains.
const std::map<std::string, ModelOptions>& Models() {
  static const auto* const kModels = new std::map<std::string, ModelOptions>{
      {"gpt_tied_dropout", WithDropout(TinyGpt(kBlocks), 0.1)},
      {"gpt_untied", Untied(TinyGpt(kBlocks))},
      {"bert_tied_dropout", WithDropout(TinyBert(kBlocks), 0.1)},
      {"mlp_dropout", WithDropout(TinyMlp(kBlocks), 0.1)}};
  return *kModels;
}

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const auto& [name, options] : Models()) names.push_back(name);
  return names;
}

// A model's name and a number of microbatches.
class StagesConformance : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(StagesConformance, TrainLikeOneProcessUnderEverySchedule) {
  const auto& [model, microbatches] = GetParam();
  const Job job{.model = Models().at(model), .microbatches = microbatches};
  const Expected expected = RunReference(job);  // ascending microbatches
  int schedules = 0;
  for (const ScheduleEntry& entry : LiveSchedules()) {
    // Whoever updates just in time cannot clip.
    if (entry.chunks != 1 || entry.update != WeightUpdate::kAtStepEnd) continue;
    ++schedules;
    for (const int stages : {1, 2, 3, 4, 8}) {
      SCOPED_TRACE(testing::Message() << entry.name << ", " << stages << " stages");
      const std::optional<Schedule> schedule =
          BuildLive(entry, {.workers = stages, .microbatches = microbatches});
      ASSERT_TRUE(schedule.has_value());
      const auto partition = PartitionModel(expected.spec, stages, "balanced");
      ASSERT_TRUE(partition.ok()) << partition.status();
      ASSERT_TRUE(OrdersOf(*schedule, *partition).empty());
      ExpectSameBits(job, expected, *partition, *schedule);
    }
  }
  EXPECT_GE(schedules, 2);
}

INSTANTIATE_TEST_SUITE_P(Models, StagesConformance,
                         testing::Combine(testing::ValuesIn(ModelNames()),
                                          testing::Values(1, 4, 7)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_",
                                               std::get<1>(info.param));
                         });

}  // namespace
}  // namespace siphon
