#include "launch/profile/measured_costs.h"

#include <gtest/gtest.h>

#include <vector>

namespace siphon {
namespace {

Interval Busy(const char* action, int64_t begin, int64_t end) {
  return {ParseAction(action).value(), IntervalKind::kBusy, Nanos(begin), Nanos(end)};
}
Interval Wait(const char* action, int64_t begin, int64_t end) {
  return {ParseAction(action).value(), IntervalKind::kWait, Nanos(begin), Nanos(end)};
}
Nanos& Of(ActionTimes& times, ActionKind kind) { return times[static_cast<size_t>(kind)]; }

TEST(BusyByStage, AddsUpActionsWithoutWaits) {
  // Stages 0 and 2 on one worker, stage 1 on the other.
  const std::vector<WorkerTimeline> workers = {
      {Busy("0F0", 0, 10), Wait("2F0", 10, 30), Busy("2F0", 30, 35), Busy("0F1", 35, 46)},
      {Wait("1F0", 0, 10), Busy("1F0", 10, 30), Busy("1B0", 40, 70)}};
  std::vector<ActionTimes> busy = BusyByStage(workers, 3);
  ASSERT_EQ(busy.size(), 3u);
  EXPECT_EQ(Of(busy[0], ActionKind::kForward), Nanos(21));
  EXPECT_EQ(Of(busy[0], ActionKind::kBackward), Nanos(0));
  EXPECT_EQ(Of(busy[1], ActionKind::kForward), Nanos(20));
  EXPECT_EQ(Of(busy[1], ActionKind::kBackward), Nanos(30));
  EXPECT_EQ(Of(busy[2], ActionKind::kForward), Nanos(5));
}

TEST(PacesOf, AreMeasuredOverPredictedKindByKind) {
  std::vector<ActionTimes> predicted(1), measured(1);
  Of(predicted[0], ActionKind::kForward) = Nanos(100);
  Of(measured[0], ActionKind::kForward) = Nanos(150);
  Of(predicted[0], ActionKind::kRecompute) = Nanos(50);
  Of(measured[0], ActionKind::kRecompute) = Nanos(100);
  Of(predicted[0], ActionKind::kBackward) = Nanos(200);
  Of(measured[0], ActionKind::kBackward) = Nanos(100);
  Of(predicted[0], ActionKind::kStep) = Nanos(10);
  Of(measured[0], ActionKind::kStep) = Nanos(40);
  EXPECT_EQ(PacesOf(predicted, measured), (std::vector<StagePace>{{.forward = 1.5,
                                                                   .recompute = 2,
                                                                   .input_backward = 0.5,
                                                                   .weight_backward = 0.5,
                                                                   .whole_backward = 0.5,
                                                                   .step = 4}}));
}

TEST(PacesOf, GoByHalvesWhereTheBackwardIsSplit) {
  std::vector<ActionTimes> predicted(1), measured(1);
  Of(predicted[0], ActionKind::kForward) = Nanos(100);
  Of(measured[0], ActionKind::kForward) = Nanos(100);
  Of(predicted[0], ActionKind::kBackwardInput) = Nanos(100);
  Of(measured[0], ActionKind::kBackwardInput) = Nanos(300);
  Of(predicted[0], ActionKind::kBackwardWeight) = Nanos(300);
  Of(measured[0], ActionKind::kBackwardWeight) = Nanos(300);
  const StagePace pace = PacesOf(predicted, measured)[0];
  EXPECT_EQ(pace.input_backward, 3);
  EXPECT_EQ(pace.weight_backward, 1);
  EXPECT_EQ(pace.whole_backward, 1.5);  // 600 for 400
  EXPECT_EQ(pace.recompute, 1);         // nothing was: as the forward
}

TEST(PacesOf, KnowNothingOfStagesThatNobodySaw) {
  const std::vector<ActionTimes> none(2);
  EXPECT_EQ(PacesOf(none, none), std::vector<StagePace>(2));
}

LayerProfile Layer(int64_t forward, int64_t whole_backward) {
  return {.name = "layer",
          .forward = Nanos(forward),
          .input_backward = Nanos(20),
          .weight_backward = Nanos(30),
          .whole_backward = Nanos(whole_backward),
          .optimizer = Nanos(7),
          .parameters = Bytes(64)};
}

TEST(AtPace, ScalesTheLayersOfEachStageAndNoBytes) {
  ModelProfile profile{.layers = {Layer(10, 45), Layer(11, 0), Layer(12, 45)}};
  profile.layers[0].recompute = Nanos(8);
  const StagePartition partition{{{0, 2}, {2, 3}}};
  const std::vector<StagePace> paces = {{.forward = 2,
                                         .recompute = 3,
                                         .input_backward = 0.5,
                                         .weight_backward = 1,
                                         .whole_backward = 2,
                                         .step = 3},
                                        {}};
  const ModelProfile scaled = AtPace(profile, partition, paces);
  EXPECT_EQ(scaled.layers[0].forward, Nanos(20));
  EXPECT_EQ(scaled.layers[0].recompute, Nanos(24));
  EXPECT_EQ(scaled.layers[0].input_backward, Nanos(10));
  EXPECT_EQ(scaled.layers[0].weight_backward, Nanos(30));
  EXPECT_EQ(scaled.layers[0].whole_backward, Nanos(90));
  EXPECT_EQ(scaled.layers[0].optimizer, Nanos(21));
  EXPECT_EQ(scaled.layers[0].parameters, Bytes(64));
  EXPECT_EQ(scaled.layers[1].forward, Nanos(22));
  EXPECT_EQ(scaled.layers[1].recompute, Nanos(33));  // as long as a forward, when computed again
  EXPECT_EQ(scaled.layers[1].whole_backward, Nanos(0));  // what its halves take together
  EXPECT_EQ(scaled.layers[2].forward, Nanos(12));
  EXPECT_EQ(scaled.layers[2].whole_backward, Nanos(45));
}

// Devices 0 and 1 behind a switch, 2 behind another; a link between 0 and 1, and a drive.
Topology ThreeDevices() {
  Topology topology;
  topology.devices.resize(3);
  topology.links = {{.from = DeviceId(0), .to = DeviceId(1), .rate = BytesPerSecond(100)},
                    {.from = DeviceId(1), .to = DeviceId(0), .rate = BytesPerSecond(90)}};
  topology.switches = {
      {.devices = {DeviceId(0), DeviceId(1)},
       .to_host = BytesPerSecond(40),
       .from_host = BytesPerSecond(20)},
      {.devices = {DeviceId(2)}, .to_host = BytesPerSecond(40), .from_host = BytesPerSecond(20)}};
  topology.drives = {{.read = BytesPerSecond(30), .write = BytesPerSecond(10)}};
  return topology;
}

TEST(AtPace, SlowsTheWaysThatWereSlow) {
  const ParkingPlace host{Placement::kHostSwap, DeviceId(0)};
  const ParkingPlace drive{Placement::kNvmeSwap, DeviceId(0)};
  const ParkingPlace lender{Placement::kPeerSwap, DeviceId(1)};
  const Topology topology = AtPace(ThreeDevices(), {{DeviceId(0), lender, 2, Bytes(5)},
                                                    {DeviceId(0), host, 1, Bytes(30)},
                                                    {DeviceId(1), host, 5, Bytes(10)},
                                                    {DeviceId(2), host, 9, Bytes(0)},
                                                    {DeviceId(2), drive, 0.5, Bytes(1)}});
  EXPECT_EQ(topology.links[0].rate, BytesPerSecond(50));
  EXPECT_EQ(topology.links[1].rate, BytesPerSecond(45));
  // 30 bytes at 1, 10 at 5: 2 on average.
  EXPECT_EQ(topology.switches[0].to_host, BytesPerSecond(20));
  EXPECT_EQ(topology.switches[0].from_host, BytesPerSecond(10));
  EXPECT_EQ(topology.switches[0].to_host_both, BytesPerSecond(0));  // still as alone
  EXPECT_EQ(topology.switches[1], ThreeDevices().switches[1]);      // nothing went there
  EXPECT_EQ(topology.drives[0].read, BytesPerSecond(60));
  EXPECT_EQ(topology.drives[0].write, BytesPerSecond(20));
}

}  // namespace
}  // namespace siphon
