// What the schedules' suite holds fixed: optimizers, clipping, threads, cuts, attention,
// activations, several chunks a worker. And that the comparison can fail.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "tests/conformance/conformance.h"
#include "tests/support/same_bits.h"
#include "tests/support/tiny_models.h"

namespace siphon {
namespace {

// As a pipeline of `stages` workers under the named schedule.
void ExpectSameBitsWith(const Job& job, int stages, const std::string& schedule) {
  const Expected expected = RunReference(job);
  const auto partition = PartitionModel(expected.spec, stages, "even");
  ASSERT_TRUE(partition.ok()) << partition.status();
  const auto program =
      BuildSchedule(schedule, {.workers = stages, .microbatches = job.microbatches});
  ASSERT_TRUE(program.ok()) << program.status();
  ExpectSameBits(job, expected, *partition, *program);
}

TEST(VariantConformance, EveryOptimizerGivesTheBitsOfOneProcess) {
  for (const std::string& name : KnownOptimizers()) {
    SCOPED_TRACE(name);
    const Job job{.model = WithDropout(TinyGpt(3), 0.1),
                  .optimizer = {.name = name, .weight_decay = 0.1}};
    ExpectSameBitsWith(job, 4, "1f1b");
  }
}

TEST(VariantConformance, MomentumGivesTheBitsOfOneProcess) {
  const Job job{.model = TinyGpt(3),
                .optimizer = {.name = "sgd", .weight_decay = 0.1, .momentum = 0.9}};
  ExpectSameBitsWith(job, 3, "1f1b");
}

TEST(VariantConformance, UnclippedStepsGiveTheBitsOfOneProcess) {
  ExpectSameBitsWith({.model = WithDropout(TinyBert(3), 0.2), .clip_norm = 0}, 4, "gpipe");
}

TEST(VariantConformance, WrittenOutAttentionGivesTheBitsOfOneProcess) {
  Job job{.model = TinyGpt(2)};
  job.model.flash_attention = false;
  ExpectSameBitsWith(job, 4, "1f1b");
}

TEST(VariantConformance, BertWithoutDropoutGivesTheBitsOfOneProcess) {
  ExpectSameBitsWith({.model = TinyBert(2)}, 4, "1f1b");
  ExpectSameBitsWith({.model = Untied(TinyBert(2))}, 2, "gpipe");
}

TEST(VariantConformance, EveryActivationGivesTheBitsOfOneProcess) {
  for (const ModelOptions& model : {TinyGpt(2), TinyBert(2), TinyMlp(2)}) {
    for (const char* activation : {"gelu_new", "gelu", "relu"}) {
      SCOPED_TRACE(model.kind + " " + activation);
      Job job{.model = model, .microbatches = 3, .steps = 3};
      job.model.activation = activation;
      ExpectSameBitsWith(job, 2, "1f1b");
    }
  }
}

// Large enough that LibTorch splits its reductions among two threads.
TEST(VariantConformance, TwoThreadsAWorkerGiveTheBitsOfOneProcessWithTwoThreads) {
  for (ModelOptions model : {WithDropout(TinyGpt(2), 0.1), TinyBert(2)}) {
    SCOPED_TRACE(model.kind);
    model.hidden = 144;
    model.sequence_length = 64;
    const Job job{.model = model,
                  .microbatches = 2,
                  .microbatch = 4,
                  .steps = 2,
                  .clip_norm = 0.1,
                  .threads = 2};
    const Expected expected = RunReference(job);
    Job one_thread = job;
    one_thread.threads = 1;
    EXPECT_FALSE(SameBits(expected.parameters, RunReference(one_thread).parameters))
        << "the model is too small for threads to matter";
    for (const int stages : {1, 2, 4}) {
      SCOPED_TRACE(testing::Message() << stages << " stages");
      const auto partition = PartitionModel(expected.spec, stages, "even");
      ASSERT_TRUE(partition.ok()) << partition.status();
      const auto program =
          BuildSchedule("1f1b", {.workers = stages, .microbatches = job.microbatches});
      ASSERT_TRUE(program.ok()) << program.status();
      ExpectSameBits(job, expected, *partition, *program);
    }
  }
}

TEST(VariantConformance, AnyCutGivesTheBitsOfOneProcess) {
  const Job job{.model = WithDropout(TinyGpt(4), 0.1), .microbatches = 3};
  const Expected expected = RunReference(job);
  for (const std::vector<int>& layers :
       {std::vector{1, 5}, {5, 1}, {1, 4, 1}, {3, 1, 2}, {1, 1, 3, 1}}) {
    SCOPED_TRACE(testing::PrintToString(layers));
    const auto partition = ExplicitPartition(expected.spec, layers);
    ASSERT_TRUE(partition.ok()) << partition.status();
    const auto program = BuildSchedule(
        "1f1b", {.workers = static_cast<int>(layers.size()), .microbatches = job.microbatches});
    ASSERT_TRUE(program.ok()) << program.status();
    ExpectSameBits(job, expected, *partition, *program);
  }
}

// Two stages a worker, by hand: dealt round, and folded so that stages 1 and 2 are neighbours on
// one worker.
TEST(VariantConformance, SeveralStagesAWorkerGiveTheBitsOfOneProcess) {
  const Job job{.model = WithDropout(TinyGpt(2), 0.1), .microbatches = 2};
  const Expected expected = RunReference(job);
  const auto partition = PartitionModel(expected.spec, 4, "even");
  ASSERT_TRUE(partition.ok()) << partition.status();
  for (const char* text : {"0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1\n",
                           "0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1\n1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1\n"}) {
    SCOPED_TRACE(text);
    const auto program = ParseSchedule(text);
    ASSERT_TRUE(program.ok()) << program.status();
    ExpectSameBits(job, expected, *partition, *program);
  }
}

TEST(SameBits, SeesOneBitOfOneElement) {
  const std::map<std::string, std::vector<float>> expected = {{"a", {1.0F, 2.0F}}, {"b", {0.0F}}};
  auto actual = expected;
  EXPECT_TRUE(SameBits(expected, actual));
  actual["a"][1] = std::nextafterf(2.0F, 3.0F);
  EXPECT_STREQ(SameBits(expected, actual).message(),
               "1 of 2 tensors differ, the first is a: 1 of 2 elements differ, the first at [1]: "
               "expected 2 (0x1p+1), got "
               "2.00000024 (0x1.000002p+1)");
  actual = expected;
  actual["b"][0] = -0.0F;
  EXPECT_FALSE(SameBits(expected, actual));
  actual = expected;
  actual.erase("b");
  EXPECT_STREQ(SameBits(expected, actual).message(), "missing tensor b");
  EXPECT_FALSE(SameBits(0.1, std::nextafter(0.1, 1.0)));
}

// The suite would be worth little if other random numbers, another order of sums or no dropout went
// unnoticed.
TEST(VariantConformance, TheReferenceNoticesWhatItShould) {
  const Job job{.model = WithDropout(TinyGpt(2), 0.1), .microbatches = 3, .steps = 2};
  const Expected expected = RunReference(job);

  Job other_seed = job;
  other_seed.seed = 8;
  EXPECT_FALSE(SameBits(expected.parameters, RunReference(other_seed).parameters));
  Job no_dropout = job;
  no_dropout.model.dropout = 0;
  EXPECT_FALSE(SameBits(expected.steps[0].loss, RunReference(no_dropout).steps[0].loss));
  Job untied = job;
  untied.model.tie_embeddings = false;
  EXPECT_FALSE(SameBits(expected.steps[0].loss, RunReference(untied).steps[0].loss));
}

}  // namespace
}  // namespace siphon
