// Every registered schedule, every kind of model, every number of stages and microbatches: the bits
// of one process.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "tests/conformance/conformance.h"
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

template <typename Entries, typename NameOf>
std::vector<std::string> NamesOf(const Entries& entries, const NameOf& name_of) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(name_of(entry));
  return names;
}

class ScheduleConformance
    : public testing::TestWithParam<std::tuple<std::string, std::string, int>> {};

TEST_P(ScheduleConformance, TrainsLikeOneProcessWithAnyNumberOfStages) {
  const auto& [model, schedule, microbatches] = GetParam();
  const Job job{.model = Models().at(model), .microbatches = microbatches};
  const Expected expected = RunReference(job);
  for (const int stages : {1, 2, 3, 4, 8}) {
    SCOPED_TRACE(testing::Message() << stages << " stages");
    const auto partition = PartitionModel(expected.spec, stages, "balanced");
    ASSERT_TRUE(partition.ok()) << partition.status();
    const auto program = BuildSchedule(schedule, {.workers = stages, .microbatches = microbatches});
    ASSERT_TRUE(program.ok()) << program.status();
    ExpectSameBits(job, expected, *partition, *program);
  }
}

std::string CaseName(const testing::TestParamInfo<ScheduleConformance::ParamType>& info) {
  const auto& [model, schedule, microbatches] = info.param;
  std::string name = absl::StrCat(model, "_", schedule, "_", microbatches);
  for (char& letter : name) {
    if (!absl::ascii_isalnum(letter)) letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Registry, ScheduleConformance,
    testing::Combine(testing::ValuesIn(NamesOf(Models(),
                                               [](const auto& model) { return model.first; })),
                     testing::ValuesIn(NamesOf(ScheduleRegistry(),
                                               [](const auto& schedule) { return schedule.name; })),
                     testing::Values(1, 4, 7)),
    CaseName);

}  // namespace
}  // namespace siphon
