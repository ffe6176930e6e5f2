#include "launch/profile/plan_in_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launch/plan_job/plan_job.h"
#include "launch/profile/job_problem.h"
#include "launch/profile/predict_step.h"
#include "planner/performance/device_spec.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A gpt of four layers on two workers, and a plan of it that swaps to the host.
class PlanInFileTest : public testing::Test {
 protected:
  PlanInFileTest() {
    config_.model = {.kind = "gpt", .layers = 4, .hidden = 16, .heads = 2};
    config_.data.kind = "synthetic";
    config_.data.sequence_length = 8;
    config_.train.global_batch = 8;
    config_.train.microbatch = 2;
    config_.pipeline.stages = 2;
    config_.memory.host_capacity = Bytes(int64_t{1} << 30);
    ModelOptions options;
    options.kind = "gpt";
    options.layers = 4;
    options.hidden = 16;
    options.heads = 2;
    options.sequence_length = 8;
    options.vocabulary = 64;
    model_ = BuildModelSpec(options).value();
    plan_ = PlanJob(config_, model_, 0).value();
    JobProblem made =
        ProblemOfJob(planned(), {.costs = {.device = &device_}, .workers = WorkerMachine::kDevices})
            .value();
    problem_ = std::move(made.problem);
    const PlannedStep kept = FindMemoryStrategy("keep")->plan(problem_).value();
    problem_.capacity.assign(2, Total(kept.simulated.peak[0]) - Bytes(1000));
    const PlannedStep step = FindMemoryStrategy("host_swap")->plan(problem_).value();
    text_ = WithSimulationInput(made.plan,
                                SimulationOf(problem_, step.mapping, step.memory, step.schedule));
  }
  PlannedJob planned() const { return {config_, model_, plan_}; }

  // The plan's file with one piece of its text replaced.
  PlanInFile File(const std::string& from = "", const std::string& to = "") const {
    PlanInFile file{.path = "plan.txt", .text = ToString(text_)};
    if (!from.empty()) {
      EXPECT_GE(absl::StrReplaceAll({{from, to}}, &file.text), 1) << from;
    }
    const auto plan = ParsePlanText(file.text);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (plan.ok()) file.plan = *plan;
    return file;
  }
  static std::string Refusal(const absl::Status& status) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }
  std::string JobRefusal(const PlanInFile& file) const {
    return Refusal(CheckPlanOfJob(file, planned()));
  }
  // Line and column of the first place of that text.
  static std::string Place(const PlanInFile& file, const std::string& words) {
    const size_t at = file.text.find(words);
    EXPECT_NE(at, std::string::npos) << words;
    int line = 1;
    size_t begin = 0;
    for (size_t next; (next = file.text.find('\n', begin)) < at; begin = next + 1) ++line;
    return absl::StrCat("plan.txt:", line, ":", at - begin + 1);
  }

  const DeviceSpec device_ = FindDeviceSpec("V100").value();
  JobConfig config_;
  ModelSpec model_;
  TrainingPlan plan_;
  PlanningProblem problem_;
  PlanText text_;
};

TEST_F(PlanInFileTest, KnowsWhereThingsStand) {
  const PlanInFile file{.path = "p",
                        .text =
                            "siphon plan 1\n# job\n\njob\n  model: gpt  # model: x\n"
                            "stage 0\n  layers:   0 to 1\nstage 1\n  layers: 2\n"};
  EXPECT_EQ(PlaceInPlan(file, "job", "model"), "p:5:10");
  EXPECT_EQ(PlaceInPlan(file, "stage 0", "layers"), "p:7:13");
  EXPECT_EQ(PlaceInPlan(file, "stage 1", "layers"), "p:9:11");
  EXPECT_EQ(PlaceInPlan(file, "stage 1", "worker"), "p:8:1");
  EXPECT_EQ(PlaceInPlan(file, "training", "worker 0"), "p:1:1");
}

TEST_F(PlanInFileTest, OfThisJobIsItsStep) {
  const PlanInFile file = File();
  ASSERT_TRUE(MovesAnything(file.plan.memory));
  EXPECT_FALSE(ParksOnDrives(file.plan.memory));
  EXPECT_TRUE(CheckPlanOfJob(file, planned()).ok());
  const auto step = StepInFile(file, problem_, problem_.profile);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->memory, text_.memory);
  EXPECT_EQ(step->schedule, text_.training);
  EXPECT_EQ(step->mapping, text_.mapping);
  const auto predicted = PredictStep(text_);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_EQ(step->simulated.step_time, predicted->step_time);
}

TEST_F(PlanInFileTest, OfAnotherJobIsRefusedWithTheFirstThingThatDiffers) {
  PlanInFile file = File("model:              gpt", "model:              bert");
  EXPECT_EQ(JobRefusal(file), absl::StrCat(Place(file, "bert"),
                                           ": model is bert, the job's is gpt"
                                           "; plan this job again (siphon plan --output)"));
  file = File("schedule:           1f1b", "schedule:           gpipe");
  EXPECT_THAT(JobRefusal(file), StartsWith(absl::StrCat(Place(file, "gpipe"), ": schedule is")));
  file = File("worker:             1", "worker:             1");
  config_.train.microbatch = 1;
  plan_ = PlanJob(config_, model_, 0).value();
  EXPECT_THAT(JobRefusal(file), HasSubstr(": microbatch is 2, the job's is 1;"));
  config_.train.microbatch = 2;
  config_.pipeline.stages = 4;
  plan_ = PlanJob(config_, model_, 0).value();
  EXPECT_THAT(JobRefusal(file), StartsWith(absl::StrCat(Place(file, "worker 1"),
                                                        ": the plan has 2 workers, the job 4")));
}

TEST_F(PlanInFileTest, NamesAStrategyThatThereIsAndTheJobsLayers) {
  text_.strategy = "host_swap";
  EXPECT_TRUE(CheckPlanOfJob(File(), planned()).ok());
  EXPECT_TRUE(
      CheckPlanOfJob(File("strategy:           host_swap", "strategy: harmony"), planned()).ok());
  PlanInFile file = File("strategy:           host_swap", "strategy: host_swop");
  EXPECT_THAT(JobRefusal(file),
              StartsWith(absl::StrCat(Place(file, "host_swop"),
                                      ": no memory strategy is called 'host_swop'; there are ")));
  file = File("transformer.embeddings .. ", "embeddings .. ");
  EXPECT_EQ(JobRefusal(file), absl::StrCat(Place(file, "embeddings .. "),
                                           ": names is embeddings .. transformer.h.1, the job's is "
                                           "transformer.embeddings .. transformer.h.1"
                                           "; plan this job again (siphon plan --output)"));
}

TEST_F(PlanInFileTest, WithOtherStagesIsRefused) {
  config_.pipeline.partition_layers = {2, 4};
  plan_ = PlanJob(config_, model_, 0).value();
  const PlanInFile file = File();
  EXPECT_THAT(JobRefusal(file),
              testing::MatchesRegex("plan.txt:[0-9]+:[0-9]+: layers is 0 to [0-9], the job's is 0 "
                                    "to 1; .*"));
}

TEST_F(PlanInFileTest, WithOtherProgramsIsRefused) {
  const PlanInFile file = File("1F0 1RECV_F1", "1RECV_F1 1F0");
  EXPECT_THAT(JobRefusal(file), HasSubstr("but for what moves tensors, the program has 1RECV_F1 as "
                                          "its action 2, the job's has 1F0; plan this job again"));
}

TEST_F(PlanInFileTest, WithGroupsOfOtherBytesIsRefused) {
  const PlanInFile file = File();
  for (LayerProfile& layer : problem_.profile.layers) {
    for (SavedTensor& tensor : layer.saved) tensor.bytes += Bytes(4);
  }
  EXPECT_THAT(Refusal(StepInFile(file, problem_, problem_.profile).status()),
              testing::MatchesRegex("plan.txt:[0-9]+:12: the group has [0-9]+ bytes; of these "
                                    "activations the job's layers have [0-9]+; .*"));
}

TEST_F(PlanInFileTest, ForAnotherServerIsRefused) {
  const PlanInFile file = File();
  problem_.topology.name = "another";
  EXPECT_THAT(Refusal(StepInFile(file, problem_, problem_.profile).status()),
              StartsWith(absl::StrCat(Place(file, "workers of one machine"),
                                      ": the plan is for 'workers of one machine', the job runs on "
                                      "'another'")));
}

// Planning such a job again would make the same plan.
TEST_F(PlanInFileTest, ForAServerThatWorkersDoNotKeepToIsRefusedWithWhatWouldChangeThat) {
  PlanInFile file = File();
  file.plan.topology.name = "another";
  EXPECT_THAT(std::string(StepInFile(file, problem_, problem_.profile).status().message()),
              testing::EndsWith(": the plan is for 'another', and the job's workers keep to no "
                                "topology; set topology.throttle, or plan without topology.name"));
}

// Of the same bytes less what cannot move, in the same shares.
TEST_F(PlanInFileTest, StripesAreCutForWhatWorkersCanMove) {
  PlanInFile file = File();
  const auto groups = [&]() -> std::vector<PlannedGroup>& {
    return file.plan.memory.stages[0].groups;
  };
  for (PlannedGroup& planned : groups()) planned.choice = {};
  const StageRange& layers = problem_.partition.stages[0];
  LayerProfile& layer = problem_.profile.layers[layers.begin + 1];
  layer.optimizer_state = Bytes(1000);
  ModelProfile whole = problem_.profile;
  whole.layers[layers.begin + 1].optimizer_state = Bytes(2000);
  groups().push_back(
      {.group = {.kind = GroupKind::kOptimizerState,
                 .layers = {layers.begin + 1, layers.begin + 2},
                 .bytes = Bytes(2000)},
       .choice = {.placement = Placement::kPeerSwap, .stripes = {{DeviceId(1), Bytes(2000)}}}});
  // Nothing moves it, so that the simulator has nothing to refuse but where it is.
  problem_.capacity.clear();
  const auto step = StepInFile(file, problem_, whole);
  if (step.ok()) {
    EXPECT_EQ(step->memory.stages[0].groups.back().choice.stripes,
              (std::vector<Stripe>{{DeviceId(1), Bytes(1000)}}));
  } else {
    EXPECT_TRUE(absl::IsInvalidArgument(step.status())) << step.status();
  }
  groups().back().group.bytes = Bytes(1500);
  EXPECT_THAT(Refusal(StepInFile(file, problem_, whole).status()),
              HasSubstr("the group has 1500 bytes; of these optimizer_state the job's layers have "
                        "2000, and workers can move 1000"));
}

TEST_F(PlanInFileTest, ThatIsNotThereIsRefusedAtItsKey) {
  config_.memory.plan = "/nowhere/plan.txt";
  EXPECT_EQ(
      Refusal(LoadPlanInFile(config_).status()),
      "default: memory.plan: cannot read plan '/nowhere/plan.txt': No such file or directory");
}

}  // namespace
}  // namespace siphon
