// How long senders hold what they sent, from the order of programs alone.

#include "planner/simulator/graph/messages_held.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "planner/lower_schedule.h"
#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

std::vector<std::vector<int>> Held(const Schedule& schedule, int room) {
  const auto index = ScheduleIndex::Build(schedule);
  EXPECT_TRUE(index.ok()) << index.status();
  return MessagesHeld(schedule, *index, room);
}

const char* const kOneForwardOneBackward =
    "0F0 0F1 0B0 0F2 0B1 0B2\n"
    "1F0 1B0 1F1 1B1 1F2 1B2\n";

// Worker 0 knows that 1F0 took what 0F0 made when it takes the gradient of 1B0 (its action 2), and
// worker 1 that 0B0 took that when it takes what 0F2 made (its action 4). Nothing comes behind the
// last gradients.
TEST(MessagesHeld, EndWithWhatComesBackFromTheReceiver) {
  EXPECT_THAT(Held(ParsedSchedule(kOneForwardOneBackward), 0),
              ElementsAre(ElementsAre(2, 4, 2, 5, 4, 5), ElementsAre(0, 4, 2, 6, 4, 6)));
}

TEST(MessagesHeld, EndAtOnceWhereTheChannelHasRoom) {
  const Schedule schedule = ParsedSchedule(kOneForwardOneBackward);
  EXPECT_THAT(Held(schedule, 1),
              ElementsAre(ElementsAre(0, 2, 2, 4, 4, 5), ElementsAre(0, 1, 2, 4, 4, 6)));
  EXPECT_THAT(Held(schedule, 2),
              ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5), ElementsAre(0, 1, 2, 3, 4, 5)));
}

// Sent by actions of their own. Worker 0: F0 S0 R0 B0, worker 1: R0 F0 B0 S0.
TEST(MessagesHeld, GoByTheActionsThatSend) {
  const Schedule schedule = ParsedSchedule(
      "0F0 0SEND_F0 0RECV_B0 0B0\n"
      "1RECV_F0 1F0 1B0 1SEND_B0\n");
  EXPECT_THAT(Held(schedule, 0), ElementsAre(ElementsAre(0, 3, 2, 3), ElementsAre(0, 1, 2, 4)));
}

// Worker 2 tells worker 1, and worker 1 worker 0: 0B0 is behind 1B0, which is behind 1F1.
TEST(MessagesHeld, EndWithWhatComesBackThroughOthers) {
  const Schedule schedule = ParsedSchedule(
      "0F0 0F1 0B0 0B1\n"
      "1F0 1F1 1B0 1B1\n"
      "2F0 2B0 2F1 2B1\n");
  EXPECT_THAT(Held(schedule, 0)[0], ElementsAre(2, 2, 2, 3));
}

// F takes 10 ns, B 20: 0F0 [0,10), 0F1 [10,20), 1B0 [20,40), 0B0 [40,60), 0B1 [70,90).
TEST(SimulatedMemory, WhatWasSentStaysUntilItMustHaveBeenTaken) {
  StageCost cost = TenNanos();
  cost.input = Bytes(10);
  cost.output = Bytes(10);
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"), cost);
  EXPECT_EQ(Simulated(input).peak[0][MemoryKind::kBoundary], Bytes(20));
  input.transport.sent = SentMemory::kUntilTaken;
  const SimulatedStep held = Simulated(input);
  EXPECT_EQ(CurveText(held.memory[0]),
            "0: boundary 10\n"
            "10: boundary 20\n"
            "40: boundary 30\n"  // with the gradient that 0B0 takes
            "60: boundary 10\n"
            "70: boundary 20\n"
            "90:\n");
  input.transport.room = 1;
  const SimulatedStep buffered = Simulated(input);
  EXPECT_EQ(buffered.peak[0][MemoryKind::kBoundary], Bytes(20));
  EXPECT_EQ(held.step_time, buffered.step_time);
}

// Both stages on one worker: 1F0 has a copy of its own while it takes what 0F0 made.
TEST(SimulatedMemory, WhatAStageTakesFromItsWorkerIsThereTwiceForAMoment) {
  StageCost cost = TenNanos();
  cost.input = Bytes(10);
  cost.output = Bytes(10);
  SimulationInput input = EqualStages(ParsedSchedule("0F0 1F0 1B0 0B0\n"), cost);
  EXPECT_EQ(Simulated(input).peak[0][MemoryKind::kBoundary], Bytes(10));
  input.transport.sent = SentMemory::kUntilTaken;
  EXPECT_EQ(Simulated(input).peak[0][MemoryKind::kBoundary], Bytes(20));
}

}  // namespace
}  // namespace siphon
