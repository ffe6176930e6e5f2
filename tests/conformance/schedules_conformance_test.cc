// Every registered schedule that workers run, several chunks and numbers of workers, microbatches
// that divide and that do not: the bits of one process. What leaves is tried with two of the models
// and cuts of layers, for each schedule and each kind of leaving others; SIPHON_TEST_ALL=1 takes
// all.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "partitioner/partition_model.h"
#include "tests/conformance/conformance.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/support/all_cases.h"
#include "tests/support/tiny_models.h"

namespace siphon {
namespace {

// Named, so that a test's name says what it trains. `blocks` and two layers more.
ModelOptions ModelNamed(const std::string& name, int blocks) {
  if (name == "gpt_tied_dropout") return WithDropout(TinyGpt(blocks), 0.1);
  if (name == "gpt_untied") return Untied(TinyGpt(blocks));
  if (name == "bert_tied_dropout") return WithDropout(TinyBert(blocks), 0.1);
  return WithDropout(TinyMlp(blocks), 0.1);
}

// References by what they depend on: the same one serves many schedules, and all that leaves in
// them.
class References {
 public:
  static References& OfProcess() {
    static auto* const references = new References;
    return *references;
  }

  const Expected& Get(const Job& job, const std::string& model,
                      const reference::AccumulationOrders& orders) {
    const Key key{model, job.model.layers, job.microbatches, job.clip_norm, orders};
    const auto known = expected_.find(key);
    if (known != expected_.end()) return known->second;
    return expected_.emplace(key, RunReference(job, orders)).first->second;
  }

 private:
  using Key = std::tuple<std::string, int64_t, int, double, reference::AccumulationOrders>;
  std::map<Key, Expected> expected_;
};

// Of a job: what is not kept.
struct Leaving {
  int run = 0;
  std::vector<Placement> placements;  // of activations
  std::vector<Placement> state;
  WeightResidence residence = WeightResidence::kWholeActions;
  int stream_buffers = kMostStreamBuffers;
  std::vector<UpdatePlace> updates = {UpdatePlace::kDevice};
  SwapTiming timing;
  StateTimes state_times = {};
  int made_ahead = LowerMemoryOptions::kInBackward;
  int share = LowerMemoryOptions::kShares;
  bool first_tensors = false;
  double clip_norm = 0.05;
};

// As many layers as stages, but at least 8, so that smaller pipelines have several a stage.
void ExpectSameBitsAs(const std::string& model, const ScheduleEntry& entry,
                      const Schedule& schedule, const Leaving& leaving = {}) {
  SCOPED_TRACE(testing::Message() << WorkerCount(schedule) << " workers, " << StageCount(schedule)
                                  << " stages, " << schedule.microbatches << " microbatches");
  Job job{.model = ModelNamed(model, std::max(StageCount(schedule), 8) - 2),
          .microbatches = schedule.microbatches,
          .steps = 2,
          .clip_norm = leaving.clip_norm,
          .leaving_run = leaving.run,
          .first_tensors = leaving.first_tensors,
          .leaving = leaving.placements,
          .state = leaving.state,
          .residence = leaving.residence,
          .stream_buffers = leaving.stream_buffers,
          .updates = leaving.updates,
          .timing = leaving.timing,
          .state_times = leaving.state_times,
          .made_ahead = leaving.made_ahead,
          .share = leaving.share};
  if (entry.update == WeightUpdate::kJustInTime) job.clip_norm = 0;
  const auto spec = BuildModelSpec(job.model);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto partition = PartitionModel(*spec, StageCount(schedule), "balanced");
  ASSERT_TRUE(partition.ok()) << partition.status();
  const Expected& expected =
      References::OfProcess().Get(job, model, OrdersOf(schedule, *partition));
  ExpectSameBits(job, expected, *partition, schedule);
}

// The schedule in this shape with the first of these numbers of microbatches that it takes.
std::optional<Schedule> FirstTaken(const ScheduleEntry& entry, ScheduleShape shape,
                                   const std::vector<int>& microbatches) {
  for (const int count : microbatches) {
    shape.microbatches = count;
    std::optional<Schedule> schedule = BuildLive(entry, shape);
    if (schedule.has_value()) return schedule;
  }
  return std::nullopt;
}

// Twice the workers divide by them; the other numbers do not, and some schedules take only the
// larger ones.
std::vector<std::vector<int>> MicrobatchChoices(int workers) {
  return {{2 * workers}, {workers + 1, 2 * workers + 1, 3 * workers + 1, 1}};
}

// The place of the running TEST_P in its suite plus that of the parameter: different for two
// neighbours of either.
size_t Turn() {
  const testing::TestSuite& suite = *testing::UnitTest::GetInstance()->current_test_suite();
  const testing::TestInfo* now = testing::UnitTest::GetInstance()->current_test_info();
  size_t place = 0;
  while (suite.GetTestInfo(static_cast<int>(place)) != now) ++place;
  const size_t parameters = LiveScheduleNames().size();
  return place / parameters + place % parameters;
}

class ScheduleConformance : public testing::TestWithParam<std::string> {
 protected:
  // Layer by layer, and a stage of several layers in runs of two, which cut it unevenly.
  void ExpectSameBitsWhereActivationsLeave(const std::vector<Placement>& placements) {
    ExpectSameBitsWhere({.placements = placements});
  }
  void ExpectSameBitsWhere(Leaving leaving) {
    const auto entry = FindSchedule(GetParam());
    ASSERT_TRUE(entry.ok()) << entry.status();
    constexpr const char* kModels[] = {"gpt_tied_dropout", "bert_tied_dropout", "mlp_dropout"};
    size_t turn = Turn();
    for (const char* model : kModels) {
      SCOPED_TRACE(model);
      ++turn;
      for (const int run : {1, 2}) {
        if (run > 1 && leaving.first_tensors) continue;
        if ((turn + static_cast<size_t>(run)) % std::size(kModels) != 0 && !TakesAllCases())
          continue;
        std::optional<Schedule> schedule;
        for (const int workers : {2, 1}) {
          if (schedule.has_value()) break;
          schedule = FirstTaken(*entry, {.workers = workers, .chunks = entry->chunks}, {4, 5, 6});
        }
        ASSERT_TRUE(schedule.has_value());
        leaving.run = run;
        ExpectSameBitsAs(model, *entry, *schedule, leaving);
      }
    }
  }
};

TEST_P(ScheduleConformance, TrainsLikeOneProcessInEveryShape) {
  const auto entry = FindSchedule(GetParam());
  ASSERT_TRUE(entry.ok()) << entry.status();
  int shapes = 0;
  for (const int chunks : {1, 2, 4}) {
    for (const int workers : {1, 2, 4, 8}) {
      for (const std::vector<int>& microbatches : MicrobatchChoices(workers)) {
        if (workers * chunks > 16 && shapes % 2 == 1) continue;  // the longest: one of the two
        const std::optional<Schedule> schedule =
            FirstTaken(*entry, {.workers = workers, .chunks = chunks}, microbatches);
        if (!schedule.has_value()) continue;
        ++shapes;
        ExpectSameBitsAs("gpt_tied_dropout", *entry, *schedule);
      }
    }
  }
  EXPECT_GE(shapes, 2) << "the suite offers nothing that this schedule takes";
}

TEST_P(ScheduleConformance, TrainsEveryKindOfModelLikeOneProcess) {
  const auto entry = FindSchedule(GetParam());
  ASSERT_TRUE(entry.ok()) << entry.status();
  for (const char* model : {"gpt_untied", "bert_tied_dropout", "mlp_dropout"}) {
    SCOPED_TRACE(model);
    std::optional<Schedule> schedule;
    for (const int workers : {4, 2, 1}) {
      if (schedule.has_value()) break;
      schedule =
          FirstTaken(*entry, {.workers = workers, .chunks = entry->chunks}, {7, 9, 2 * workers});
    }
    ASSERT_TRUE(schedule.has_value());
    ExpectSameBitsAs(model, *entry, *schedule);
  }
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenActivationsAreComputedAgain) {
  ExpectSameBitsWhereActivationsLeave({Placement::kRecompute});
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenActivationsGoToTheHost) {
  ExpectSameBitsWhereActivationsLeave({Placement::kHostSwap});
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenActivationsGoToOtherDevices) {
  ExpectSameBitsWhereActivationsLeave({Placement::kPeerSwap});
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenActivationsGoToADrive) {
  ExpectSameBitsWhereActivationsLeave({Placement::kNvmeSwap});
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenActivationsGoEverywhere) {
  ExpectSameBitsWhereActivationsLeave({Placement::kPeerSwap, Placement::kRecompute,
                                       Placement::kHostSwap, Placement::kPeerSwap,
                                       Placement::kNvmeSwap, Placement::kKeep});
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenTheFirstTensorsOfLayersLeave) {
  for (const std::vector<Placement>& placements :
       {std::vector{Placement::kRecompute},
        {Placement::kPeerSwap, Placement::kRecompute, Placement::kNvmeSwap, Placement::kHostSwap,
         Placement::kKeep}}) {
    ExpectSameBitsWhere({.placements = placements, .first_tensors = true});
  }
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenLayersAreComputedAgainBeforeTheirBackward) {
  for (const int made_ahead : {0, 2}) {
    ExpectSameBitsWhere({.placements = {Placement::kRecompute}, .made_ahead = made_ahead});
  }
  ExpectSameBitsWhere({.placements = {Placement::kRecompute, Placement::kPeerSwap},
                       .made_ahead = 1,
                       .first_tensors = true});
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenAShareOfTheMicrobatchesGoes) {
  for (const int share : {1, 5}) {
    ExpectSameBitsWhere({.placements = {Placement::kPeerSwap, Placement::kRecompute,
                                        Placement::kNvmeSwap, Placement::kHostSwap},
                         .made_ahead = share == 1 ? 0 : LowerMemoryOptions::kInBackward,
                         .share = share});
  }
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenStateIsAwayBetweenItsUses) {
  ExpectSameBitsWhere(
      {.placements = {Placement::kKeep}, .state = {Placement::kHostSwap, Placement::kPeerSwap}});
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenStateComesLayerByLayer) {
  ExpectSameBitsWhere({.placements = {Placement::kKeep},
                       .state = {Placement::kPeerSwap, Placement::kHostSwap},
                       .residence = WeightResidence::kLayerByLayer});
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenStateStreamsThroughFewerBuffers) {
  for (const int buffers : {1, 2}) {
    ExpectSameBitsWhere({.placements = {Placement::kRecompute},
                         .state = {Placement::kHostSwap, Placement::kPeerSwap},
                         .residence = WeightResidence::kLayerByLayer,
                         .stream_buffers = buffers,
                         .timing = {.gradients_ahead = buffers - 1}});
  }
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenGradientsComeInAhead) {
  ExpectSameBitsWhere({.placements = {Placement::kRecompute},
                       .state = {Placement::kHostSwap, Placement::kPeerSwap},
                       .residence = WeightResidence::kLayerByLayer,
                       .timing = {.gradients_ahead = 2}});
}

// Out under their forwards, in under their backwards, but for the last ones of each stage.
TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenActivationsStream) {
  for (const int groups : {0, 1}) {
    ExpectSameBitsWhere(
        {.placements = {Placement::kHostSwap, Placement::kPeerSwap, Placement::kRecompute},
         .stream_buffers = groups + 1,
         .timing = {.groups_out_behind = groups, .groups_in_before = groups}});
  }
  ExpectSameBitsWhere(
      {.placements = {Placement::kPeerSwap},
       .state = {Placement::kHostSwap, Placement::kPeerSwap},
       .residence = WeightResidence::kLayerByLayer,
       .timing = {.forwards_to_leave = 0, .groups_out_behind = 1, .groups_in_before = 0}});
}

// All groups of optimizer state but the first of each stage are home between steps.
TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenStateIsHomeBetweenSteps) {
  const SwapTiming home = {
      .groups_away_between_steps = 1, .forwards_to_leave_home = 2, .actions_to_come_home = 2};
  ExpectSameBitsWhere({.placements = {Placement::kKeep},
                       .state = {Placement::kHostSwap, Placement::kPeerSwap},
                       .timing = home});
  ExpectSameBitsWhere({.placements = {Placement::kPeerSwap, Placement::kRecompute},
                       .state = {Placement::kPeerSwap, Placement::kHostSwap, Placement::kKeep},
                       .residence = WeightResidence::kLayerByLayer,
                       .timing = home});
  ExpectSameBitsWhere({.placements = {Placement::kRecompute},
                       .state = {Placement::kKeep, Placement::kKeep, Placement::kHostSwap},
                       .timing = home,
                       .state_times = {.gone = {1, 2}, .back = {3, 0}, .in = {2}}});
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenStateComesInEarly) {
  ExpectSameBitsWhere({.placements = {Placement::kRecompute, Placement::kKeep},
                       .state = {Placement::kHostSwap, Placement::kPeerSwap},
                       .timing = {.groups_ahead = 2},
                       .state_times = {.in = {6, 2, 0}}});
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenEverythingLeaves) {
  for (const WeightResidence residence :
       {WeightResidence::kWholeActions, WeightResidence::kLayerByLayer}) {
    ExpectSameBitsWhere({.placements = {Placement::kPeerSwap, Placement::kRecompute,
                                        Placement::kHostSwap, Placement::kKeep},
                         .state = {Placement::kHostSwap, Placement::kKeep, Placement::kPeerSwap},
                         .residence = residence});
  }
}

TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenOptimizerStepsAreOnTheHost) {
  ExpectSameBitsWhere({.placements = {Placement::kRecompute}, .updates = {UpdatePlace::kHost}});
}

// Beside weights and gradients that are on the host anyway, elsewhere, and on the worker.
TEST_P(ScheduleConformance, TrainsLikeOneProcessWhenSomeStepsAreOnTheHostAndStateIsAway) {
  for (const WeightResidence residence :
       {WeightResidence::kWholeActions, WeightResidence::kLayerByLayer}) {
    ExpectSameBitsWhere({.placements = {Placement::kKeep},
                         .state = {Placement::kHostSwap, Placement::kKeep, Placement::kHostSwap,
                                   Placement::kPeerSwap},
                         .residence = residence,
                         .updates = {UpdatePlace::kHost, UpdatePlace::kDevice}});
  }
}

// Without clipping each worker steps, on the host as well, when it is through.
TEST_P(ScheduleConformance, TrainsLikeOneProcessWhereNoStepWaitsForTheNorm) {
  ExpectSameBitsWhere({.placements = {Placement::kRecompute, Placement::kKeep},
                       .state = {Placement::kHostSwap, Placement::kKeep, Placement::kHostSwap,
                                 Placement::kPeerSwap},
                       .updates = {UpdatePlace::kHost, UpdatePlace::kDevice},
                       .clip_norm = 0});
  ExpectSameBitsWhere({.placements = {Placement::kPeerSwap},
                       .state = {Placement::kPeerSwap, Placement::kHostSwap, Placement::kKeep},
                       .residence = WeightResidence::kLayerByLayer,
                       .timing = {.groups_away_between_steps = 1, .actions_to_come_home = 0},
                       .clip_norm = 0});
}

INSTANTIATE_TEST_SUITE_P(Registry, ScheduleConformance, testing::ValuesIn(LiveScheduleNames()),
                         [](const auto& info) { return TestNameOf(info.param); });

// What torch.distributed.pipelining 2.11 writes for its DualPipeV on two workers with four
// microbatches, in both of its formats.
constexpr char kComputeOnly[] =
    "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
    "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n"
    "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,(2F3;1B1)OVERLAP_F_B,2B2,"
    "1B2,2I3,1I3,2W3,1W3\n";
constexpr char kComputeComms[] =
    "0UNSHARD,3UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,0F2,0SEND_F2,3F0,3RECV_F1,3I0,3SEND_B0,"
    "3W0,3F1,3RECV_F2,0RECV_B0,(0F3;3B1)OVERLAP_F_B,0SEND_F3,3SEND_B1,(3F2;0B0)OVERLAP_F_B,"
    "3RECV_F3,0RECV_B1,3B2,3SEND_B2,(3F3;0B1)OVERLAP_F_B,0RECV_B2,3B3,3SEND_B3,3REDUCE_GRAD,"
    "0RECV_B3,3RESHARD,0I2,0W2,0I3,0W3,0REDUCE_GRAD,0RESHARD\n"
    "1UNSHARD,2UNSHARD,1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1RECV_F2,1F1,2F1,2SEND_F1,2RECV_B0,1F2,"
    "2B0,(2F2;1B0)OVERLAP_F_B,2SEND_F2,1SEND_B0,1RECV_F3,2RECV_B1,(1F3;2B1)OVERLAP_F_B,"
    "(2F3;1B1)OVERLAP_F_B,2SEND_F3,1SEND_B1,2RECV_B2,2B2,1B2,1SEND_B2,2RECV_B3,2I3,1I3,1SEND_B3,"
    "2W3,2REDUCE_GRAD,2RESHARD,1W3,1REDUCE_GRAD,1RESHARD\n";

TEST(FilesOfTorch, TrainLikeOneProcess) {
  for (const char* text : {kComputeOnly, kComputeComms}) {
    const auto schedule = BuildSchedule(
        "csv", {.workers = 2, .chunks = 2, .microbatches = 4, .options = {.csv = text}});
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ExpectSameBitsAs("gpt_tied_dropout", FindSchedule("csv").value(), *schedule);
  }
}

// Harmony's packs and groups of microbatches, forward and backward apart: six microbatches in two
// groups forward and three backward, or four or five in groups of which the last is smaller. With
// everything kept, and with weights, gradients and state at the host between the groups.
TEST(HarmonyPacksAndGroups, ForwardAndBackwardApartTrainLikeOneProcess) {
  const ScheduleEntry entry = FindSchedule("harmony_pp").value();
  for (const ScheduleShape& shape : std::vector<ScheduleShape>{
           {2, 2, 6, {.microbatch_group = 3, .backward_group = 2}},
           {2, 4, 4, {.forward_pack = 2, .backward_pack = 1, .backward_group = 3}},
           {1,
            6,
            5,
            {.forward_pack = 2, .backward_pack = 3, .microbatch_group = 2, .backward_group = 4}},
           {4, 2, 5, {.microbatch_group = 1, .backward_group = 4}}}) {
    const auto schedule = BuildSchedule(entry.name, shape);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ExpectSameBitsAs("gpt_tied_dropout", entry, *schedule);
    for (const Placement activations : {Placement::kRecompute, Placement::kHostSwap}) {
      ExpectSameBitsAs("gpt_untied", entry, *schedule,
                       {.run = 1, .placements = {activations}, .state = {Placement::kHostSwap}});
    }
  }
}

// A schedule by hand whose stages add up their gradients in orders of their own, none ascending.
TEST(OrdersOfAccumulation, AreThoseOfEachStage) {
  const auto schedule = ParseSchedule(
      "0F0 0F1 0F2 0I1 0W1 0B0 0B2\n"
      "1F0 1F1 1I1 1F2 1I0 1I2 1W2 1W1 1W0\n");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const ScheduleEntry entry{.name = "by hand"};
  ExpectSameBitsAs("gpt_tied_dropout", entry, *schedule);
  const StagePartition halves{.stages = {{0, 2}, {2, 3}}};
  EXPECT_EQ(OrdersOf(*schedule, halves),
            (reference::AccumulationOrders{{1, 0, 2}, {1, 0, 2}, {2, 1, 0}}));
}

}  // namespace
}  // namespace siphon
