// The two texts made of the table: the job in effect, and the help.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/config/job_schema.h"
#include "launch/config/load_job_config.h"
#include "planner/keyed_hash.h"
#include "tests/launch/config/config_fixture.h"

namespace siphon {
namespace {

using testing::HasSubstr;

void ExpectRoundTrip(const JobConfig& job) {
  const std::string text = WriteJobConfig(job);
  const auto read = ParseJobConfig(text, "written.yaml", {}, SmallMachine());
  ASSERT_TRUE(read.ok()) << read.status() << "\n" << text;
  EXPECT_EQ(*read, job) << text;
  EXPECT_EQ(WriteJobConfig(*read), text);
}

std::string RandomText(KeyedGenerator& random) {
  static constexpr absl::string_view kSigns = "aZ0 _-./:#'\"\\[]{}&*!|>%@`,?~=\t";
  std::string text = "\xC3\xA9";
  for (uint64_t i = random.Below(12); i > 0; --i) text += kSigns[random.Below(kSigns.size() - 1)];
  return random.Below(2) == 0 ? text : text.substr(2) + "x";
}

// A number over many orders of magnitude, with all its bits in use.
double RandomNumber(KeyedGenerator& random) {
  return random.Uniform() * std::pow(10.0, static_cast<double>(random.Below(40)) - 20);
}

JobConfig RandomJob(uint64_t key) {
  KeyedGenerator random(key);
  JobConfig job;
  job.model.layers = static_cast<int64_t>(1 + random.Below(1000));
  job.model.heads = static_cast<int64_t>(1 + random.Below(16));
  job.model.hidden = job.model.heads * static_cast<int64_t>(1 + random.Below(100));
  job.model.dropout = random.Uniform();
  job.model.flash_attention = random.Below(2) == 0;
  job.model.init_from = RandomText(random);
  job.data.path = RandomText(random);
  job.train.learning_rate = RandomNumber(random);
  job.train.weight_decay = RandomNumber(random);
  job.train.seed = static_cast<int64_t>(random.Next() >> 1);
  job.pipeline.stages = static_cast<int64_t>(1 + random.Below(5));
  if (random.Below(2) == 0) {
    job.pipeline.partition.clear();
    for (int64_t stage = 0; stage < job.pipeline.stages; ++stage) {
      job.pipeline.partition_layers.push_back(static_cast<int64_t>(1 + random.Below(9)));
    }
  }
  job.launch.heartbeat_timeout = Nanos(static_cast<int64_t>(1 + random.Below(1'000'000'000'000)));
  job.launch.stall_timeout = Nanos(static_cast<int64_t>(random.Below(1'000'000'000'000)));
  for (uint64_t i = random.Below(3); i > 0; --i)
    job.launch.mpirun_options.push_back(RandomText(random));
  for (int64_t i = random.Below(2) == 0 ? 0 : job.pipeline.stages; i > 0; --i) {
    job.memory.capacity.push_back(
        Bytes(static_cast<int64_t>(1'000'000 + random.Below(1'000'000'000))));
  }
  job.memory.chunk = Bytes(4096 + static_cast<int64_t>(random.Below(1'000'000)));
  job.memory.reserve = Bytes(static_cast<int64_t>(random.Below(1'000'000)));
  job.memory.nvme_directory = RandomText(random);
  job.memory.replan = random.Below(2) == 0;
  job.memory.known_plans = random.Below(2) == 0;
  job.memory.nvme_capacity = Bytes(static_cast<int64_t>(random.Below(1'000'000'000)));
  job.checkpoint.resume = RandomText(random);
  job.output.directory = RandomText(random);
  return job;
}

TEST(WriteJobConfig, DefaultsReadBackAsDefaults) { ExpectRoundTrip(JobConfig()); }

TEST(WriteJobConfig, EveryJobReadsBackAsItself) {
  for (uint64_t key = 0; key < 200; ++key) ExpectRoundTrip(RandomJob(key));
}

TEST(WriteJobConfig, UsesTheLargestUnitThatIsExact) {
  JobConfig job;
  job.memory.capacity = {Bytes(512 << 20), Bytes(1000)};
  job.launch.heartbeat_timeout = Nanos(1'500'000'000);
  const std::string text = WriteJobConfig(job);
  EXPECT_THAT(text, HasSubstr("  capacity: [512MiB, 1000B]\n"));
  EXPECT_THAT(text, HasSubstr("  heartbeat_timeout: 1500ms\n"));
}

TEST(WriteJobConfig, QuotesWhatYamlWouldReadAsSomethingElse) {
  JobConfig job;
  job.data.path = "true";
  job.output.directory = "a: \"b\"\\c";
  const std::string text = WriteJobConfig(job);
  EXPECT_THAT(text, HasSubstr("  path: \"true\"\n"));
  EXPECT_THAT(text, HasSubstr("  directory: \"a: \\\"b\\\"\\\\c\"\n"));
}

TEST(JobSchema, NamesEachKeyOnceAndSectionsTogether) {
  std::set<std::string> names;
  std::set<std::string> closed;
  std::string section;
  for (const JobKey& key : JobSchema()) {
    EXPECT_TRUE(names.insert(absl::StrCat(key.section, ".", key.key)).second) << key.key;
    if (key.section != section) {
      EXPECT_TRUE(closed.insert(key.section).second) << key.section << " stands in two places";
    }
    section = key.section;
  }
}

TEST(JobSchema, EveryDefaultPassesItsOwnRule) {
  for (const JobKey& key : JobSchema()) {
    const std::string value = key.write(JobConfig());
    if (value.empty()) continue;
    const auto job = ParseJobConfig(absl::StrCat(key.section, ":\n  ", key.key, ": ", value, "\n"),
                                    "default.yaml", {}, SmallMachine());
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(*job, JobConfig()) << key.key;
  }
}

TEST(JobConfigHelp, HasALineForEachKeyWithTypeDefaultAndMeaning) {
  const std::string help = JobConfigHelp(SmallMachine().known);
  for (const JobKey& key : JobSchema()) {
    EXPECT_THAT(help, HasSubstr(absl::StrCat("\n  ", key.key, " "))) << key.key;
    EXPECT_THAT(help, HasSubstr(absl::StrCat("  ", key.meaning, "\n"))) << key.key;
    EXPECT_FALSE(key.values(SmallMachine().known).empty()) << key.key;
  }
  EXPECT_THAT(help, HasSubstr("gpipe, 1f1b"));
  EXPECT_THAT(help, HasSubstr("  whole number, at least 0  "));
}

TEST(JobConfigHelp, AlignsItsColumns) {
  // Every meaning begins in one column, but for rows whose list of words is longer than the column.
  std::set<size_t> columns;
  const std::string help = JobConfigHelp();
  for (const JobKey& key : JobSchema()) {
    if (key.values({}).size() > 44) continue;
    const size_t at = help.find(absl::StrCat("  ", key.meaning, "\n"));
    columns.insert(at - help.rfind('\n', at));
  }
  EXPECT_EQ(columns.size(), 1u);
}

}  // namespace
}  // namespace siphon
