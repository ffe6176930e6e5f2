// Jobs that follow a plan file: a run's plan.txt, trained again by it, gives the same bits and the
// same plan.txt.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "launch/config/read_text_file.h"
#include "launch/output/text_file.h"
#include "launch/process/rank_process.h"
#include "launch/run/record/memory_line.h"
#include "launch/run/trainer.h"
#include "planner/memory/layer_uses.h"
#include "planner/plan_text.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/parking_job.h"

namespace siphon {
namespace {

using testing::HasSubstr;

class PlanFiles : public ParkingJob {
 protected:
  struct Trained {
    std::string plan;                         // plan.txt
    std::map<std::string, std::string> bits;  // of the last checkpoint
  };
  Trained Train(JobConfig job, const std::string& folder) const {
    job.output.directory = absl::StrCat(folder_, "/", folder);
    const auto outcome = Trainer(job).Train();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    if (!outcome.ok()) return {};
    return {.plan = ReadTextFile(PlanOf(folder), "plan").value(),
            .bits = CheckpointBits(outcome->last_checkpoint)};
  }
  std::string PlanOf(const std::string& folder) const {
    return absl::StrCat(folder_, "/", folder, "/plan.txt");
  }
  static JobConfig Following(JobConfig job, const std::string& plan) {
    job.memory.strategy = "auto";
    job.memory.plan = plan;
    return job;
  }
};

class FollowedPlanFiles : public PlanFiles, public testing::WithParamInterface<const char*> {};

TEST_P(FollowedPlanFiles, GiveTheSameBitsAndTheSamePlan) {
  JobConfig job = TightJob(GetParam(), 92);
  job.memory.replan = false;
  absl::Status planned = PrepareJob(job, {}).status();
  if (absl::IsResourceExhausted(planned)) {
    job = TightJob(GetParam(), 96);
    job.memory.replan = false;
    planned = PrepareJob(job, {}).status();
  }
  ASSERT_TRUE(planned.ok()) << planned;
  const Trained first = Train(job, "first");
  const auto text = ParsePlanText(first.plan);
  ASSERT_TRUE(text.ok()) << text.status();
  ASSERT_FALSE(text->memory.stages.empty()) << "nothing had to leave";
  const JobConfig following = Following(job, PlanOf("first"));
  const Trained second = Train(following, "second");
  EXPECT_EQ(second.plan, first.plan);
  EXPECT_EQ(second.bits, first.bits);
  const auto prepared = PrepareJob(following, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_THAT(MemoryLine(*prepared), HasSubstr(absl::StrCat("as ", PlanOf("first"), " has it, ")));
}

INSTANTIATE_TEST_SUITE_P(Strategies, FollowedPlanFiles,
                         testing::Values("auto", "d2d_swap", "host_swap", "nvme_swap", "recompute",
                                         "mpress", "vdnn", "capacity_based", "optimizer_offload",
                                         "weight_offload", "l2l"),
                         [](const auto& info) { return std::string(info.param); });

// Also where nobody has to park anything.
TEST_F(PlanFiles, AreFollowedWhateverElseWouldFit) {
  const JobConfig tight = TightJob("host_swap", 92);
  const Trained first = Train(tight, "first");
  JobConfig ample = Following(tight, PlanOf("first"));
  ample.memory.capacity.clear();
  const auto prepared = PrepareJob(ample, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(prepared->plan.memory, ParsePlanText(first.plan)->memory);
  EXPECT_GT(HostBytes(prepared->parking), Bytes(0));
  EXPECT_FALSE(prepared->kept_whole.has_value());
  const Trained kept = Train(Job(4), "kept");
  EXPECT_EQ(Train(ample, "ample").bits, kept.bits);
  // And one that keeps everything, where that fits.
  EXPECT_EQ(Train(Following(Job(4), PlanOf("kept")), "again").bits, kept.bits);
  EXPECT_EQ(ReadTextFile(PlanOf("again"), "plan").value(), kept.plan);
  const auto refused = PrepareJob(Following(tight, PlanOf("kept")), {});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("/kept/plan.txt keeps everything"));
}

// What it has found is not looked for again, here not even with the strategy of the job.
TEST_F(PlanFiles, OfTheParentAreFollowedByItsRanks) {
  JobConfig job = TightJob("recompute", 92);
  const auto by_parent = PrepareJob(job, {});
  ASSERT_TRUE(by_parent.ok()) << by_parent.status();
  std::filesystem::create_directories(folder_);
  ASSERT_TRUE(WriteTextFile(PlanPathIn(folder_), ToString(by_parent->plan_text)).ok());
  job.memory.strategy = "host_swap";
  const auto alone = PrepareJob(job, {});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_NE(alone->plan.memory, by_parent->plan.memory);

  setenv(kBoardVariable, "of a parent", /*overwrite=*/1);
  setenv(kJobDirectoryVariable, folder_.c_str(), /*overwrite=*/1);
  const auto rank = PrepareJob(job, {});
  unsetenv(kBoardVariable);
  unsetenv(kJobDirectoryVariable);
  ASSERT_TRUE(rank.ok()) << rank.status();
  EXPECT_EQ(ToString(rank->plan_text), ToString(by_parent->plan_text));
  EXPECT_EQ(rank->plan.memory, by_parent->plan.memory);
  EXPECT_EQ(rank->plan.training, by_parent->plan.training);
  EXPECT_EQ(rank->job.memory.plan, "");
}

// Of ranks without a parent: here not even with the strategy of the job.
TEST_F(PlanFiles, OfAnotherRankAreAskedForBeforeASearch) {
  JobConfig job = TightJob("recompute", 92);
  const auto by_other = PrepareJob(job, {});
  ASSERT_TRUE(by_other.ok()) << by_other.status();
  job.memory.strategy = "host_swap";
  int asked = 0;
  absl::StatusOr<std::string> answer = ToString(by_other->plan_text);
  const PlanSearch search{.ask_others = [&](const JobConfig& of) {
    ++asked;
    EXPECT_EQ(of.memory.strategy, job.memory.strategy);
    return answer;
  }};
  const auto told = PrepareJob(job, {}, search);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(ToString(told->plan_text), ToString(by_other->plan_text));
  EXPECT_EQ(told->plan.training, by_other->plan.training);
  EXPECT_EQ(asked, 1);

  answer = "";
  const auto alone = PrepareJob(job, {}, search);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(ToString(alone->plan_text), ToString(PrepareJob(job, {})->plan_text));
  EXPECT_EQ(asked, 2);

  answer = absl::UnavailableError("nobody is there");
  EXPECT_EQ(PrepareJob(job, {}, search).status(), answer.status());
  EXPECT_EQ(asked, 3);

  job.memory.capacity.clear();
  EXPECT_TRUE(PrepareJob(job, {}, search).ok());
  EXPECT_EQ(asked, 3) << "there is nothing to plan";
}

TEST_F(PlanFiles, OfAnEarlierRunAreFollowedWhereTheyCanBe) {
  JobConfig job = TightJob("recompute", 92);
  const auto before = PrepareJob(job, {});
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_TRUE(before->was_searched);
  job.memory.strategy = "host_swap";
  std::string known = ToString(before->plan_text);
  const PlanSearch search{.ask_earlier = [&](const JobConfig&) { return known; }};
  const auto followed = PrepareJob(job, {}, search);
  ASSERT_TRUE(followed.ok()) << followed.status();
  EXPECT_EQ(ToString(followed->plan_text), known);
  EXPECT_TRUE(followed->was_planned_before);
  EXPECT_FALSE(followed->was_searched);

  const auto alone = PrepareJob(job, {});
  ASSERT_TRUE(alone.ok()) << alone.status();
  JobConfig other = TightJob("recompute", 92);
  other.pipeline.schedule = "gpipe";
  JobConfig roomier = TightJob("recompute", 97);
  for (const std::string& useless :
       {std::string(), std::string("no plan"), ToString(PrepareJob(other, {})->plan_text),
        ToString(PrepareJob(roomier, {})->plan_text)}) {
    known = useless;
    const auto searched = PrepareJob(job, {}, search);
    ASSERT_TRUE(searched.ok()) << searched.status();
    EXPECT_FALSE(searched->was_planned_before) << useless.substr(0, 200);
    EXPECT_TRUE(searched->was_searched);
    EXPECT_EQ(ToString(searched->plan_text), ToString(alone->plan_text));
  }
}

// Whoever searches has what those have who are told: here auto's plan moves nothing, and is one of
// the problem in which state could move.
TEST_F(PlanFiles, AreWhatTheSearchersOwnJobGoesBy) {
  JobConfig job = TightJob("auto", 92);
  job.topology.name = "dgx1_v100";
  job.topology.throttle = "0.001";
  const auto found = PrepareJob(job, {});
  ASSERT_TRUE(found.ok()) << found.status();
  const std::string text = ToString(found->plan_text);
  const auto told = PrepareJob(job, {}, {.ask_others = [&](const JobConfig&) { return text; }});
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(ToString(told->plan_text), text);
  EXPECT_EQ(told->parking, found->parking);
  EXPECT_EQ(told->host_steps, found->host_steps);
}

TEST_F(PlanFiles, ThatDoNotFitAreRefusedAtTheWorkersCapacity) {
  JobConfig job = TightJob("host_swap", 92);
  Train(job, "first");
  JobConfig less = Following(job, PlanOf("first"));
  less.memory.capacity = {job.memory.capacity[0] - Bytes(100 << 10)};
  const auto refused = PrepareJob(less, {});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(
      std::string(refused.status().message()),
      testing::ContainsRegex("/first/plan.txt:[0-9]+:[0-9]+: worker 0 may hold 1.50 MiB by the "
                             "plan, and 1.40 MiB by the job: the plan does not fit: "));
  JobConfig host = Following(job, PlanOf("first"));
  host.memory.host_capacity = Bytes(1024);
  const auto without_host = PrepareJob(host, {});
  EXPECT_TRUE(absl::IsResourceExhausted(without_host.status())) << without_host.status();
  EXPECT_THAT(std::string(without_host.status().message()), HasSubstr("the host"));
}

// A person's change: worker 0 parks with the host what it parked with worker 1.
TEST_F(PlanFiles, AreEditedByPeople) {
  JobConfig job = TightJob("d2d_swap", 92);
  job.memory.replan = false;
  const Trained first = Train(job, "first");
  PlanText text = ParsePlanText(first.plan).value();
  for (StagePlan& stage : text.memory.stages) {
    for (PlannedGroup& planned : stage.groups) {
      if (planned.choice.placement != Placement::kPeerSwap) continue;
      planned.choice = {.placement = Placement::kHostSwap};
    }
  }
  const std::string path = absl::StrCat(folder_, "/edited.txt");
  ASSERT_TRUE(WriteTextFile(path, ToString(text)).ok());
  const auto prepared = PrepareJob(Following(job, path), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_GT(HostBytes(prepared->parking), Bytes(0));
  EXPECT_EQ(LentBytes(prepared->parking, DeviceId(1)), Bytes(0));
  EXPECT_EQ(Train(Following(job, path), "second").bits, first.bits);
  // And a mistake: nobody waits for the copy out.
  std::string broken = ToString(text);
  const size_t begin = broken.find("0SWAP_OUT_END0.");
  ASSERT_NE(begin, std::string::npos);
  broken.erase(begin, broken.find(' ', begin) - begin + 1);
  ASSERT_TRUE(WriteTextFile(path, broken).ok());
  const auto refused = PrepareJob(Following(job, path), {});
  EXPECT_THAT(std::string(refused.status().message()),
              testing::ContainsRegex("edited.txt:[0-9]+:1: "));
}

// Of layers that are computed again whole, a person has only what they save first dropped.
TEST_F(PlanFiles, MayLeaveALayerPartOfWhatItSaves) {
  JobConfig job = TightJob("recompute", 92);
  job.memory.replan = false;
  const Trained first = Train(job, "first");
  job.memory.capacity.clear();
  const auto model = PrepareJob(job, {});
  ASSERT_TRUE(model.ok()) << model.status();
  PlanText text = ParsePlanText(first.plan).value();
  int edited = 0;
  for (StagePlan& stage : text.memory.stages) {
    for (auto& [group, choice] : stage.groups) {
      if (choice.placement != Placement::kRecompute) continue;
      const LayerSpec& layer = model->model.spec.layers[group.layers.begin];
      const LayerProfile saves = {
          .saved = SavedOf(*layer.memory, job.train.microbatch, Precision::kFloat32)};
      const std::vector<int> counts = FirstTensorsOf(saves);
      if (counts.empty() || group.layers.end != group.layers.begin + 1) continue;
      ++edited;
      group.first_tensors = counts.back();
      group.bytes = Bytes(0);
      for (int tensor = 0; tensor < counts.back(); ++tensor) {
        group.bytes += saves.saved[tensor].bytes;
      }
    }
  }
  ASSERT_GT(edited, 0);
  const std::string path = absl::StrCat(folder_, "/edited.txt");
  ASSERT_TRUE(WriteTextFile(path, ToString(text)).ok());
  const auto prepared = PrepareJob(Following(job, path), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_THAT(MemoryLine(*prepared), HasSubstr(" of them in part)"));
  EXPECT_EQ(Train(Following(job, path), "second").bits, first.bits);
}

}  // namespace
}  // namespace siphon
