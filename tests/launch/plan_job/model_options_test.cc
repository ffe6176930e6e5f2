#include "launch/plan_job/model_options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace siphon {
namespace {

bool Fuses(const std::string& backend, const std::string& precision, int64_t width,
           int64_t sequence, bool asked = true) {
  JobConfig job;
  job.model.kind = "gpt";
  job.model.heads = 3;
  job.model.hidden = 3 * width;
  job.model.flash_attention = asked;
  job.data.sequence_length = sequence;
  job.train.precision = precision;
  job.pipeline.backend = backend;
  const auto options = ModelOptionsOf(job, 256);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() && options->flash_attention;
}

TEST(ModelOptions, WriteAttentionOutWhereCudaHasNoKernelForItsShape) {
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    EXPECT_TRUE(Fuses("cuda", precision, 64, 96));
    EXPECT_FALSE(Fuses("cuda", precision, 64, 96, /*asked=*/false));
    EXPECT_FALSE(Fuses("cuda", precision, 20, 96));   // would be padded to 24
    EXPECT_FALSE(Fuses("cuda", precision, 264, 96));  // wider than flash takes
    EXPECT_EQ(Fuses("cuda", precision, 64, 100), precision != "fp32");
    EXPECT_TRUE(Fuses("cpu", precision, 20, 100));
  }
}

TEST(ModelError, BlamesTheKeyThatTheMessageBeginsWith) {
  const JobConfig job;
  const auto blamed = [&](const std::string& problem) {
    return std::string(ModelError(job, absl::InvalidArgumentError(problem)).message());
  };
  EXPECT_EQ(blamed("data.sequence_length: 99: too long"),
            "default: data.sequence_length: 99: too long");
  EXPECT_EQ(blamed("model.heads: 3: must divide"), "default: model.heads: 3: must divide");
  EXPECT_EQ(blamed("the layers: too many"), "default: model.kind: the layers: too many");
  EXPECT_EQ(blamed("data of both: too much"), "default: model.kind: data of both: too much");
}

}  // namespace
}  // namespace siphon
