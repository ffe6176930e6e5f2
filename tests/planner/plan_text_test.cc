#include "planner/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/home_groups.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

// As a person may have typed it: no more than what is needed.
constexpr absl::string_view kShortPlan =
    "siphon plan 1\n"
    "job\n"
    "  microbatch: 4\n"
    "  global_batch: 8\n"
    "  costs: unit\n"
    "stage 0\n"
    "  worker: 0\n"
    "  layers: 0 to 1\n"
    "  forward: 1.5ms\n"
    "stage 1\n"
    "  worker: 1\n"
    "  layers: 2 to 2\n"
    "training\n"
    "  worker 0: 0F0 0F1 0B0 0B1\n"
    "  worker 1: 1F0 1B0 1F1 1B1\n";

PlanText Parsed(absl::string_view text) {
  absl::StatusOr<PlanText> plan = ParsePlanText(text);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : PlanText{};
}

// The message for the short plan after one replacement, or "accepted".
std::string AfterEdit(absl::string_view from, absl::string_view to) {
  const std::string edited = absl::StrReplaceAll(kShortPlan, {{from, to}});
  EXPECT_NE(edited, kShortPlan) << from;
  const auto plan = ParsePlanText(edited);
  return plan.ok() ? "accepted" : std::string(plan.status().message());
}

TEST(PlanText, IsReadAsAPersonWritesIt) {
  const PlanText plan = Parsed(kShortPlan);
  EXPECT_EQ(plan.microbatch, 4);
  EXPECT_EQ(plan.global_batch, 8);
  EXPECT_EQ(plan.costs, kUnitCosts);
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[0].layers, (StageRange{0, 2}));
  EXPECT_EQ(plan.stages[0].cost.forward, Nanos(1'500'000));
  EXPECT_EQ(plan.stages[1].worker, WorkerId(1));
  EXPECT_EQ(plan.training, ParsedSchedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"));
  EXPECT_EQ(plan.workers.size(), 2u);
  EXPECT_TRUE(plan.evaluation.programs.empty());
}

TEST(PlanText, IgnoresCommentsBlankLinesAndLineEndsOfWindows) {
  std::string text = absl::StrReplaceAll(
      kShortPlan, {{"\n", "  # why not\r\n\r\n   # a line of its own\n"}, {"job", "job\t"}});
  EXPECT_EQ(Parsed(text), Parsed(kShortPlan));
}

TEST(PlanText, KeepsCompoundCellsCapacitiesAndLinks) {
  PlanText plan = Parsed(kShortPlan);
  plan.training = ParsedSchedule("0F0 (0F1;0B0)OVERLAP_F_B 0B1\n1F0 1I0 1W0 1F1 1B1\n");
  plan.workers = {{.capacity = Bytes(int64_t{512} << 20)}, {.communication = Bytes(12345)}};
  plan.link_latency = Nanos(1'230);
  plan.link_rate = BytesPerSecond(12'500'000'001);
  plan.shared_parameters = {{"wte:weight", {StageId(0), StageId(1)}}};
  const std::string text = ToString(plan);
  EXPECT_NE(text.find("worker 0: 0F0 (0F1;0B0)OVERLAP_F_B 0B1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("capacity:           512MiB\n"), std::string::npos) << text;
  EXPECT_NE(text.find("link_rate:          12.500000001GB/s\n"), std::string::npos) << text;
  EXPECT_EQ(Parsed(text), plan);
}

TEST(PlanText, KeepsWhatWorkersOfOneMachineShare) {
  PlanText plan = Parsed(kShortPlan);
  EXPECT_EQ(ToString(plan).find("cores_together"), std::string::npos);
  EXPECT_EQ(ToString(plan).find("whole_backward"), std::string::npos);
  plan.copy_rate = BytesPerSecond(8'000'000'000);
  plan.message_room = 2;
  EXPECT_EQ(ToString(plan).find("sent_is_held"), std::string::npos);
  plan.sent = SentMemory::kUntilTaken;
  EXPECT_EQ(ToString(plan).find("streamed_is_held"), std::string::npos);
  plan.frees_at_waits = true;
  plan.cores_together = {1000, 1740};
  plan.stages[0].cost.whole_backward = Nanos(1'500);
  const std::string text = ToString(plan);
  EXPECT_NE(text.find("copy_rate:          8GB/s\n"), std::string::npos) << text;
  EXPECT_NE(text.find("message_room:       2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("sent_is_held:       until_taken\n"), std::string::npos) << text;
  EXPECT_NE(text.find("streamed_is_held:   until_waited_for\n"), std::string::npos) << text;
  EXPECT_NE(text.find("cores_together:     1000, 1740\n"), std::string::npos) << text;
  EXPECT_NE(text.find("whole_backward:     1.5us\n"), std::string::npos) << text;
  EXPECT_EQ(Parsed(text), plan);
  const std::string wrong = absl::StrReplaceAll(text, {{"1000, 1740", "1000, 0"}});
  EXPECT_THAT(std::string(ParsePlanText(wrong).status().message()), testing::HasSubstr("'0'"));
  const std::string other = absl::StrReplaceAll(text, {{"until_waited_for", "never"}});
  EXPECT_THAT(
      std::string(ParsePlanText(other).status().message()),
      testing::EndsWith("streamed_is_held is 'never'; the only rule to name is until_waited_for"));
}

TEST(PlanText, KeepsTheRuleByWhichMicrobatchesTakeWeights) {
  PlanText plan = Parsed(kShortPlan);
  EXPECT_EQ(ToString(plan).find("weight_rule"), std::string::npos);
  plan.training.weight_rule = WeightRule::kOneGroupBehind;
  const std::string text = ToString(plan);
  EXPECT_NE(text.find("weight_rule:        one_group_behind\n"), std::string::npos) << text;
  EXPECT_EQ(Parsed(text), plan);
  const std::string wrong = absl::StrReplaceAll(text, {{"one_group_behind", "two"}});
  EXPECT_THAT(std::string(ParsePlanText(wrong).status().message()),
              testing::EndsWith("weight_rule is 'two'; the only rule to name is one_group_behind"));
}

TEST(PlanText, ReadsBackWhatItPrintsWhateverTheNumbers) {
  std::mt19937_64 random(20260211);
  const auto number = [&random] {  // of every magnitude
    return static_cast<int64_t>(random() >> (1 + random() % 63));
  };
  for (int round = 0; round < 200; ++round) {
    PlanText plan = Parsed(kShortPlan);
    plan.microbatch = 1 + number() % 1000;
    plan.training.replicas = 1 + static_cast<int>(number() % 3);
    plan.global_batch = plan.microbatch * 2 * plan.training.replicas;
    plan.link_rate = BytesPerSecond(number());
    plan.copy_rate = BytesPerSecond(number());
    plan.swap_rate = BytesPerSecond(number());
    plan.message_room = static_cast<int>(number() % 100);
    for (int64_t core = number() % 4; core > 0; --core) {
      plan.cores_together.push_back(1 + number() % 100'000);
    }
    for (PlanStage& stage : plan.stages) {
      stage.cost = {.forward = Nanos(number()),
                    .input_backward = Nanos(number()),
                    .weight_backward = Nanos(number()),
                    .whole_backward = Nanos(number()),
                    .step = Nanos(number()),
                    .parameters = Bytes(number()),
                    .shared_parameters = Bytes(number()),
                    .shared_gradients = Bytes(number()),
                    .stash = Bytes(number()),
                    .backward_workspace = Bytes(number()),
                    .input_backward_workspace = Bytes(number()),
                    .weight_backward_workspace = Bytes(number())};
    }
    plan.workers[1].capacity = Bytes(number());
    plan.stages[0].host_step = Nanos(number());
    plan.predicted.peak.assign(2 * plan.training.replicas, Bytes(number()));
    if (number() % 2 == 0) plan.predicted.peak_at_most = plan.predicted.peak;
    plan.stages[0].layer_costs = {{.forward = Nanos(number())},
                                  {.stash = Bytes(number()), .shared_before = Bytes(number())}};
    plan.stages[1].layer_costs = {{.whole_backward = Nanos(number()),
                                   .optimizer = Nanos(number()),
                                   .recompute = Nanos(number())}};
    EXPECT_EQ(Parsed(ToString(plan)), plan) << ToString(plan);
  }
}

// The short plan on two of three devices, with groups on both stages.
PlanText PlanWithMemory() {
  PlanText plan = Parsed(kShortPlan);
  plan.strategy = "d2d_swap";
  plan.stages[1].host_step = Nanos(7'000'000);
  plan.host_rate = BytesPerSecond(11'700'000'000);
  plan.predicted = {Nanos(96'000'000), Nanos(80'000'000), {Bytes(5), Bytes(6)}};
  plan.topology = UniformTopology(3, BytesPerSecond(25'000'000'000), Nanos(2'000));
  plan.mapping.device_of_worker = {DeviceId(2), DeviceId(0)};
  plan.workers[1].slack = Bytes(77);
  plan.stages[0].layer_costs = {{.forward = Nanos(1'000'000), .stash = Bytes(3 << 20)},
                                {.forward = Nanos(500'000), .stash = Bytes(3 << 20)}};
  plan.stages[1].layer_costs = {{.kept_for_weights = Bytes(9), .optimizer = Nanos(5)}};
  plan.memory.stages.resize(2);
  plan.memory.stages[0].groups = {
      {.group = {GroupKind::kActivations, {0, 2}, Bytes(6 << 20), Bytes(12), Nanos(1'500'000)},
       .choice = {Placement::kPeerSwap,
                  {{DeviceId(0), Bytes(2 << 20)}, {DeviceId(1), Bytes(4 << 20)}},
                  Placement::kRecompute}}};
  plan.memory.stages[1] = {{{.group = {GroupKind::kOptimizerState, {2, 3}, Bytes(8)},
                             .choice = {.placement = Placement::kHostSwap}}},
                           UpdatePlace::kHost};
  plan.training = ParsedSchedule(
      "0F0 0SWAP_OUT0.0 0F1 0SWAP_OUT_END0.0 0SWAP_IN0.0 0B0 0B1\n1F0 1B0 1F1 1B1 "
      "1STEP.0\n");
  return plan;
}

TEST(PlanText, KeepsMemoryPlanMappingAndTopology) {
  const std::string text = ToString(PlanWithMemory());
  EXPECT_NE(text.find("\npredicted\n"
                      "  step_time:          96ms\n"
                      "  lower_bound:        80ms\n"
                      "  peak:               5B, 6B\n"
                      "\ntopology\n"
                      "  name:               3 devices, all linked alike\n"
                      "  copy_engines:       one_per_peer\n"
                      "  devices 0 to 2: numa 0\n"
                      "  links 0 -> 1, 2: rate 25GB/s, latency 2us\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nworker 1\n"
                      "  device:             0\n"
                      "  slack:              77B\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  layer 0: forward 1ms, stash 3MiB\n"
                      "  layer 1: forward 500us, stash 3MiB\n"
                      "  group 0: activations of layers 0 to 1, 6MiB, input 12B, recompute_time "
                      "1.5ms, d2d_swap to device 0 2MiB, device 1 4MiB, else recompute\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  host_step:          7ms\n"
                      "  update:             host\n"
                      "  layer 2: forward 0ns, optimizer 5ns, kept_for_weights 9B\n"
                      "  group 0: optimizer_state of layer 2, 8B, host_swap\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(Parsed(text), PlanWithMemory());
}

// Where optimizer state is between steps only the programs say.
TEST(PlanText, KeepsStateThatIsHomeBetweenSteps) {
  PlanText plan = PlanWithMemory();
  for (const UpdatePlace update : {UpdatePlace::kDevice, UpdatePlace::kHost}) {
    plan.memory.stages[1].update = update;
    plan.memory.stages[1].groups[0].choice.steps_on_device = update == UpdatePlace::kHost;
    for (const char* program : {"1SWAP_OUT.0 1F0 1SWAP_OUT_END.0 1B0 1F1 1B1 1SWAP_IN.0 1STEP.0",
                                "1F0 1B0 1F1 1B1 1SWAP_IN.0 1STEP.0 1SWAP_OUT.0 1SWAP_OUT_END.0"}) {
      plan.training = ParsedSchedule(absl::StrCat("0F0 0F1 0B0 0B1\n", program, "\n"));
      const auto read = ParsePlanText(ToString(plan));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->memory, plan.memory);
      const HomeGroups home = HomeGroupsOf(read->training, read->memory);
      EXPECT_EQ(home, HomeGroupsOf(plan.training, plan.memory));
      EXPECT_EQ(home.contains({StageId(1), GroupId(0)}), program[1] == 'S');
    }
  }
}

TEST(PlanText, KeepsBuffersOfWeightsThatStream) {
  PlanText plan = PlanWithMemory();
  EXPECT_EQ(ToString(plan).find("stream_buffers"), std::string::npos);
  plan.memory.stages[0].stream_buffers = 2;
  const std::string text = ToString(plan);
  EXPECT_NE(text.find("stream_buffers:     2\n"), std::string::npos) << text;
  EXPECT_EQ(Parsed(text), plan);
  for (const auto& [wrong, says] : {std::pair("0", "'0' is not a whole number from 1"),
                                    std::pair("4", "stream_buffers is 4; 3 is the most")}) {
    const std::string other = absl::StrReplaceAll(
        text, {{"stream_buffers:     2", absl::StrCat("stream_buffers:     ", wrong)}});
    EXPECT_THAT(std::string(ParsePlanText(other).status().message()), testing::HasSubstr(says));
  }
}

TEST(PlanText, PutsLayersThatAreAlikeOnOneLine) {
  PlanText plan = Parsed(kShortPlan);
  plan.stages[0].layers.end = 9'000;
  plan.stages[1].layers = {9'000, 9'001};
  plan.stages[0].layer_costs.assign(9'000, {.forward = Nanos(7)});
  plan.stages[0].layer_costs[8].stash = Bytes(1);
  plan.stages[1].layer_costs.resize(1);
  const std::string text = ToString(plan);
  EXPECT_NE(text.find("  layers 0 to 7: forward 7ns\n"
                      "  layer 8: forward 7ns, stash 1B\n"
                      "  layers 9 to 8999: forward 7ns\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(Parsed(text), plan);
}

TEST(PlanText, MapsEachReplicaOfAWorker) {
  PlanText plan = Parsed(kShortPlan);
  plan.training.replicas = 2;
  plan.global_batch = 16;
  plan.mapping.device_of_worker = {DeviceId(3), DeviceId(2), DeviceId(1), DeviceId(0)};
  const std::string text = ToString(plan);
  EXPECT_NE(text.find("worker 0\n  device:             3, 1\n"), std::string::npos) << text;
  EXPECT_EQ(Parsed(text), plan);
}

TEST(PlanText, KeepsNamesThatAFileCannotHave) {
  EXPECT_EQ(NameForPlan(" V100 #2\nor so\r"), "V100 _2_or so");
}

// The message for the plan with memory after one replacement, or "accepted".
std::string AfterMemoryEdit(absl::string_view from, absl::string_view to) {
  const std::string before = ToString(PlanWithMemory());
  const std::string edited = absl::StrReplaceAll(before, {{from, to}});
  EXPECT_NE(edited, before) << from;
  const auto plan = ParsePlanText(edited);
  return plan.ok() ? "accepted" : std::string(plan.status().message());
}

TEST(PlanText, RefusesGroupsThatCannotBe) {
  EXPECT_EQ(AfterMemoryEdit("layers 0 to 1, 6MiB", "layers 0 to 2, 6MiB"),
            "52:12: the group has layers 0 to 2, but stage 0 has 0 to 1");
  EXPECT_EQ(AfterMemoryEdit("device 1 4MiB", "device 1 5MiB"),
            "52:12: the stripes do not add up to the 6MiB of the group; 'd2d_swap to device 1 "
            "6MiB' would");
  EXPECT_EQ(AfterMemoryEdit("device 1 4MiB", "device 3 4MiB"),
            "52:12: there is no device 3; devices are 0 to 2");
  EXPECT_EQ(AfterMemoryEdit("device 1 4MiB", "device 0 4MiB"),
            "52:12: device 0 has two stripes of the group; put both into one");
  EXPECT_EQ(AfterMemoryEdit("device 1 4MiB", "device 2 4MiB"),
            "52:12: device 2 cannot lend to device 2, which has the stage: the topology does not "
            "link them both ways; linked with it: 0, 1");
  EXPECT_EQ(AfterMemoryEdit("8B, host_swap", "8B, recompute"),
            "73:12: optimizer_state cannot be computed again; only activations can");
  EXPECT_EQ(
      AfterMemoryEdit("d2d_swap to device 0 2MiB, device 1 4MiB", "host_swap, steps on device"),
      "52:12: 'steps on device' is for optimizer state of a stage with 'update: host', where "
      "host_swap alone means that these layers step on the host; leave it out");
  EXPECT_EQ(AfterMemoryEdit("else recompute", "else d2d_swap"),
            "52:12: the second choice is for when lenders refuse, so it is not d2d_swap");
  EXPECT_EQ(AfterMemoryEdit("group 0: act", "group 1: act"),
            "52:9: group 1 is out of order; the next one is 0");
}

// Stage 0 is on device 2. A link without wires, as PCIe's, is one.
TEST(PlanText, RefusesStripesWithoutALinkBothWays) {
  const auto after = [](absl::string_view links) {
    return AfterMemoryEdit("  links 2 -> 0, 1: rate 25GB/s, latency 2us\n", links);
  };
  EXPECT_EQ(after("  links 2 -> 0: rate 25GB/s\n  links 2 -> 1: rate 9GB/s\n"), "accepted");
  EXPECT_EQ(after("  links 2 -> 0: rate 25GB/s\n"),
            "52:12: device 1 cannot lend to device 2, which has the stage: the topology does not "
            "link them both ways; linked with it: 0");
  EXPECT_EQ(after("  links 2 -> 1: rate 25GB/s\n"),
            "52:12: device 0 cannot lend to device 2, which has the stage: the topology does not "
            "link them both ways; linked with it: 1");
  EXPECT_EQ(after(""),
            "51:12: device 0 cannot lend to device 2, which has the stage: the topology does not "
            "link them both ways; no device is; write host_swap");
}

TEST(PlanText, RefusesLayersDevicesAndPeaksThatAreMissing) {
  EXPECT_EQ(AfterMemoryEdit("  layer 1: forward 500us, stash 3MiB\n", ""),
            "34:1: stage 0 has lines with the costs of 1 of its 2 layers; either all layers of all "
            "stages have them or none");
  EXPECT_EQ(AfterMemoryEdit("  layer 2: forward 0ns, optimizer 5ns, kept_for_weights 9B\n", ""),
            "54:1: stage 1 has lines with the costs of 0 of its 1 layers; either all layers of all "
            "stages have them or none");
  EXPECT_EQ(AfterMemoryEdit("  layer 1: for", "  layer 2: for"),
            "51:3: 'layer 2' is out of order; the stage has layers 0 to 1, and layer 1 is the next "
            "one");
  EXPECT_EQ(AfterMemoryEdit("device:             0", "device:             2"),
            "31:23: device 2 has worker 0 already");
  EXPECT_EQ(AfterMemoryEdit("device:             0", "device:             3"),
            "31:23: there is no device 3; devices are 0 to 2");
  EXPECT_EQ(AfterMemoryEdit("  device:             0\n", ""),
            "30:1: worker 1 has 0 devices; it needs 1, one for each replica");
  EXPECT_EQ(AfterMemoryEdit("5B, 6B", "5B"),
            "14:1: there are 1 peaks of 2 workers; write one each");
  EXPECT_EQ(
      AfterMemoryEdit("links 0 -> 1, 2", "links 0 -> 1, 1"),
      "19:1: the link from device 0 to device 1 is given twice; one entry has the rate of all "
      "wires together");
  EXPECT_EQ(AfterMemoryEdit("update:             host", "update:             lender"),
            "71:23: update is 'lender'; the only place to name is host");
}

TEST(PlanText, NamesTheLineAndColumnOfWhatIsWrong) {
  EXPECT_EQ(AfterEdit("siphon plan 1", "worker 0"),
            "1:1: 'worker 0' is not the first line of a plan file; it is 'siphon plan 1'");
  EXPECT_EQ(AfterEdit("forward: 1.5ms", "forward: 1.5"),
            "9:12: '1.5' has no unit; known: ns, us, ms, s, min, h");
  EXPECT_EQ(AfterEdit("forward: 1.5ms", "forward 1.5ms"),
            "9:3: 'forward 1.5ms' has no colon; write 'key: value'");
  EXPECT_EQ(AfterEdit("  microbatch: 4", "  microbatch: -4"),
            "3:15: '-4' is not a whole number from 1 to 9223372036854775807");
  EXPECT_EQ(AfterEdit("  layers: 0 to 1", "  layers: 0-1"),
            "8:11: '0-1' are no layers; write the first and the last: '0 to 2'");
  EXPECT_EQ(AfterEdit("stage 1", "stage 2"), "10:7: stage 2 is out of order; the next one is 1");
  EXPECT_EQ(AfterEdit("training", "trainings"),
            "13:1: unknown section 'trainings'; known: job, predicted, topology, worker, stage, "
            "shared parameters, training, evaluation (lines of a section are indented)");
  EXPECT_EQ(AfterEdit("  costs: unit\n", ""), "2:1: 'job' has no line 'costs: '; it needs one");
  EXPECT_EQ(AfterEdit("  costs: unit\n", "  costs: unit\n  costs: unit\n"),
            "6:3: 'costs' stands twice in 'job'");
  EXPECT_EQ(AfterEdit("global_batch: 8", "global_batch: 12"),
            "2:1: global_batch is 12, but the programs have 2 microbatches of 4");
  EXPECT_EQ(AfterEdit("  layers: 2 to 2", "  layers: 3 to 3"),
            "10:1: stage 1 begins with layer 3; the next one is 2");
}

TEST(PlanText, NamesThePlaceInAProgram) {
  EXPECT_EQ(AfterEdit("1F0 1B0 1F1", "1F0 1X0 1F1").substr(0, 44),
            "15:17: action '1X0': unknown kind 'X'; known");
  EXPECT_EQ(AfterEdit("worker 0: 0F0", "worker 0: 1F0"),
            "15:13: 1F0: stage 1 stands in line 14 already; one worker holds a stage");
  EXPECT_EQ(AfterEdit("worker 1: 1F0 1B0 1F1 1B1", "worker 1: 2F0 2B0 2F1 2B1"),
            "13:1: stage 1 is missing: stages 0 to 2 need a worker each");
  EXPECT_EQ(AfterEdit("  worker 1: 1F0", "  worker 2: 1F0"),
            "15:3: 'worker 2' where the program of worker 1 belongs; write 'worker 1: ' and its "
            "actions");
  EXPECT_EQ(AfterEdit("  worker: 1", "  worker: 0"),
            "11:11: stage 1 is on worker 0, but its actions are in the program of worker 1");
  EXPECT_EQ(AfterEdit("training\n", "worker 7\n  capacity: 1GiB\ntraining\n"),
            "13:1: there is no 'worker 7'; the programs are of 2");
}

TEST(PlanText, RefusesWhatIsNoPlan) {
  for (const absl::string_view text :
       {"", "\n\n", "# siphon plan 1\n", "siphon plan 1", "siphon plan 1\n  key: value\n",
        "siphon plan 1\njob\n", "siphon plan 1\nworker 999999999\n",
        "siphon plan 1\nstage 2147483647\n", "\x01\x02:\xff"}) {
    EXPECT_EQ(ParsePlanText(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(PlanText, TakesLongTextsInLinearTime) {
  // Would take minutes, or all memory, if anything looked at all that came before.
  std::string many_sections = "siphon plan 1\njob\n";
  for (int worker = 0; worker < 60'000; ++worker) {
    absl::StrAppend(&many_sections, "worker ", worker, "\n  capacity: 1B\n");
  }
  EXPECT_FALSE(ParsePlanText(many_sections).ok());
  std::string many_shared = "siphon plan 1\nshared parameters\n";
  for (int name = 0; name < 60'000; ++name) absl::StrAppend(&many_shared, "  p", name, ": 0\n");
  EXPECT_FALSE(ParsePlanText(many_shared).ok());
  // Each line would stand for thousands of layers.
  std::string many_layers = "siphon plan 1\njob\n";
  for (int stage = 0; stage < 20'000; ++stage) {
    absl::StrAppend(&many_layers, "stage ", stage, "\n  worker: 0\n  layers: 0 to 9999\n",
                    "  layers 0 to 9999: forward 1ms\n");
  }
  EXPECT_FALSE(ParsePlanText(many_layers).ok());
  std::string sparse_programs(500'000, '\n');
  EXPECT_FALSE(ParsePlanText(absl::StrCat("siphon plan 1\njob\n  microbatch: 1\n  global_batch: 1\n"
                                          "  costs: unit\ntraining",
                                          sparse_programs, "  worker 0: 0F0\n"))
                   .ok());
}

}  // namespace
}  // namespace siphon
