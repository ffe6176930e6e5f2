// Every schedule on every shape with every number of microbatches, for every model. Long, and
// longer with every schedule, so only on demand: SIPHON_TEST_ALL=1.

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "partitioner/partition_model.h"
#include "tests/conformance/conformance.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/support/all_cases.h"
#include "tests/support/tiny_models.h"

namespace siphon {
namespace {

constexpr int kBlocks = 30;  // 32 layers: 8 workers of 4 stages have one each
constexpr std::pair<int, int> kShapes[] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {8, 1}, {1, 2}, {2, 2},
                                           {4, 2}, {8, 2}, {1, 4}, {2, 4}, {4, 4}, {8, 4}};

// What schedules do not look at: every shape takes the next of these, so that a schedule meets all
// of them, and each with several numbers of microbatches.
std::vector<Job> Variants(const ModelOptions& model, int microbatches) {
  std::vector<Job> jobs;
  for (const bool tied : {true, false}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const std::string& optimizer : KnownOptimizers()) {
        Job job{.model = WithDropout(model, dropout), .microbatches = microbatches, .steps = 2};
        job.model.tie_embeddings = tied;
        job.optimizer.name = optimizer;
        job.clip_norm = 0.05;  // 32 layers and 16 microbatches make smaller gradients
        jobs.push_back(job);
      }
    }
  }
  return jobs;
}

void ExpectSameBitsForAllShapes(const ScheduleEntry& entry, const std::vector<Job>& variants,
                                size_t first) {
  std::map<std::pair<size_t, reference::AccumulationOrders>, Expected> expected;
  size_t next = first;
  for (const auto& [workers, chunks] : kShapes) {
    const size_t variant = next++ % variants.size();
    Job job = variants[variant];
    if (entry.update == WeightUpdate::kJustInTime) job.clip_norm = 0;
    SCOPED_TRACE(testing::Message()
                 << workers << " workers of " << chunks << " stages, "
                 << (job.model.tie_embeddings ? "tied" : "untied") << ", dropout "
                 << job.model.dropout << ", " << job.optimizer.name);
    const std::optional<Schedule> schedule =
        BuildLive(entry, {.workers = workers, .chunks = chunks, .microbatches = job.microbatches});
    if (!schedule.has_value()) continue;
    const auto spec = BuildModelSpec(job.model);
    ASSERT_TRUE(spec.ok()) << spec.status();
    const auto partition = PartitionModel(*spec, StageCount(*schedule), "balanced");
    ASSERT_TRUE(partition.ok()) << partition.status();
    const std::pair key(variant, OrdersOf(*schedule, *partition));
    if (!expected.contains(key)) expected[key] = RunReference(job, key.second);
    ExpectSameBits(job, expected[key], *partition, *schedule);
  }
}

// A model's kind and a schedule.
class FullProduct : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static ModelOptions Model() {
    const std::string& kind = std::get<0>(GetParam());
    if (kind == "gpt") return TinyGpt(kBlocks);
    return kind == "bert" ? TinyBert(kBlocks) : TinyMlp(kBlocks);
  }
};

TEST_P(FullProduct, TrainsLikeOneProcess) {
  if (!TakesAllCases())
    GTEST_SKIP() << "skipped, because the full product takes long; SIPHON_TEST_ALL=1 runs it";
  const auto entry = FindSchedule(std::get<1>(GetParam()));
  ASSERT_TRUE(entry.ok()) << entry.status();
  size_t first = 0;
  for (const int microbatches : {1, 4, 7, 16}) {
    SCOPED_TRACE(testing::Message() << microbatches << " microbatches");
    ExpectSameBitsForAllShapes(*entry, Variants(Model(), microbatches), first);
    first += 5;  // has nothing in common with the number of variants or of shapes
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FullProduct,
                         testing::Combine(testing::Values("gpt", "bert", "mlp"),
                                          testing::ValuesIn(LiveScheduleNames())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  TestNameOf(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace siphon
