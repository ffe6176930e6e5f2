// The product of all that the other suites vary one by one. Long, and longer with every schedule,
// so only on demand: SIPHON_TEST_ALL=1.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "tests/conformance/conformance.h"
#include "tests/support/tiny_models.h"

namespace siphon {
namespace {

constexpr int kBlocks = 6;  // 8 layers

bool Wanted() {
  const char* all = std::getenv("SIPHON_TEST_ALL");
  return all != nullptr && std::string_view(all) == "1";
}

void ExpectSameBitsForAllShapes(const Job& job) {
  const Expected expected = RunReference(job);
  for (const int stages : {1, 2, 3, 4, 8}) {
    for (const ScheduleEntry& schedule : ScheduleRegistry()) {
      SCOPED_TRACE(testing::Message() << schedule.name << ", " << stages << " stages");
      const auto partition = PartitionModel(expected.spec, stages, "balanced");
      ASSERT_TRUE(partition.ok()) << partition.status();
      const auto program = schedule.build({.workers = stages, .microbatches = job.microbatches});
      ASSERT_TRUE(program.ok()) << program.status();
      ExpectSameBits(job, expected, *partition, *program);
    }
  }
}

class FullProduct : public testing::TestWithParam<std::string> {
 protected:
  static ModelOptions Model() {
    if (GetParam() == "gpt") return TinyGpt(kBlocks);
    return GetParam() == "bert" ? TinyBert(kBlocks) : TinyMlp(kBlocks);
  }
};

TEST_P(FullProduct, TrainsLikeOneProcess) {
  if (!Wanted())
    GTEST_SKIP() << "skipped, because the full product takes long; SIPHON_TEST_ALL=1 runs it";
  for (const bool tied : {true, false}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const std::string& optimizer : KnownOptimizers()) {
        for (const int microbatches : {1, 4, 7}) {
          SCOPED_TRACE(testing::Message()
                       << (tied ? "tied" : "untied") << ", dropout " << dropout << ", " << optimizer
                       << ", " << microbatches << " microbatches");
          Job job{.model = WithDropout(Model(), dropout), .microbatches = microbatches, .steps = 3};
          job.model.tie_embeddings = tied;
          job.optimizer.name = optimizer;
          ExpectSameBitsForAllShapes(job);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FullProduct, testing::Values("gpt", "bert", "mlp"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace siphon
