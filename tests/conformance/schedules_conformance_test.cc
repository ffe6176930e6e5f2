// Every registered schedule, every kind of model, every number of stages and microbatches: the bits
// of one process.

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <tuple>
#include <vector>

#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "tests/conformance/conformance.h"
#include "tests/support/tiny_models.h"

namespace siphon {
namespace {

constexpr int kBlocks = 6;  // 8 layers, so that 8 stages have one each

struct ModelCase {
  std::string name;
  ModelOptions options;
};

std::vector<ModelCase> Models() {
  return {{"gpt_tied_dropout", WithDropout(TinyGpt(kBlocks), 0.1)},
          {"gpt_untied", Untied(TinyGpt(kBlocks))},
          {"bert_tied_dropout", WithDropout(TinyBert(kBlocks), 0.1)},
          {"mlp_dropout", WithDropout(TinyMlp(kBlocks), 0.1)}};
}

class ScheduleConformance
    : public testing::TestWithParam<std::tuple<ModelCase, ScheduleEntry, int>> {};

TEST_P(ScheduleConformance, TrainsLikeOneProcessWithAnyNumberOfStages) {
  const auto& [model, schedule, microbatches] = GetParam();
  const Job job{.model = model.options, .microbatches = microbatches};
  const Expected expected = RunReference(job);
  for (const int stages : {1, 2, 3, 4, 8}) {
    SCOPED_TRACE(testing::Message() << stages << " stages");
    const auto partition = PartitionModel(expected.spec, stages, "balanced");
    ASSERT_TRUE(partition.ok()) << partition.status();
    const auto program = schedule.build({.workers = stages, .microbatches = microbatches});
    ASSERT_TRUE(program.ok()) << program.status();
    ExpectSameBits(job, expected, *partition, *program);
  }
}

std::string CaseName(const testing::TestParamInfo<ScheduleConformance::ParamType>& info) {
  std::string schedule = std::get<1>(info.param).name;
  for (char& letter : schedule)
    letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  return std::get<0>(info.param).name + "_" + schedule + "_" +
         std::to_string(std::get<2>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Registry, ScheduleConformance,
                         testing::Combine(testing::ValuesIn(Models()),
                                          testing::ValuesIn(ScheduleRegistry()),
                                          testing::Values(1, 4, 7)),
                         CaseName);

}  // namespace
}  // namespace siphon
