#include "swap/device/numa_place.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace siphon {
namespace {

// Two nodes with two processors each, and one of memory alone.
NumaMachine TwoSockets() { return {{{0, {0, 1}}, {1, {2, 3}}, {2, {}}}}; }

TEST(NumaNodeOf, IsThatOfTheDeviceFirst) {
  EXPECT_EQ(NodeOf(TwoSockets(), {.device_node = 1, .may_run_on = {0, 1}, .runs_on = 0}), 1);
  EXPECT_EQ(NodeOf(TwoSockets(), {.device_node = 2}), 2);
  EXPECT_EQ(NodeOf(TwoSockets(), {.device_node = 7, .may_run_on = {0}}), 0) << "there is no such";
}

TEST(NumaNodeOf, IsThenWhereTheWorkerIsBoundOrRuns) {
  EXPECT_EQ(NodeOf(TwoSockets(), {.may_run_on = {2, 3}, .runs_on = 2}), 1);
  EXPECT_EQ(NodeOf(TwoSockets(), {.may_run_on = {3}}), 1);
  EXPECT_EQ(NodeOf(TwoSockets(), {.may_run_on = {0, 1, 2, 3}, .runs_on = 3}), 1);
  EXPECT_EQ(NodeOf(TwoSockets(), {.may_run_on = {1, 2}, .runs_on = 1}), 0);
  EXPECT_EQ(NodeOf(TwoSockets(), {.may_run_on = {1, 2}}), std::nullopt);
  EXPECT_EQ(NodeOf(TwoSockets(), {}), std::nullopt);
}

TEST(NumaNodeOf, IsNoneWhereThereIsNothingToChoose) {
  EXPECT_EQ(NodeOf({}, {.device_node = 0, .runs_on = 0}), std::nullopt);
  EXPECT_EQ(NodeOf({{{0, {0, 1}}}}, {.device_node = 0, .may_run_on = {0}}), std::nullopt);
}

class NumaPlaceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (ReadNumaMachine("numa:2 pu:1").nodes.empty()) {
      GTEST_SKIP() << "skipped, because this was built without hwloc";
    }
  }
};

TEST_F(NumaPlaceTest, ReadsMachinesThatHwlocMakesUp) {
  EXPECT_EQ(ReadNumaMachine("numa:2 core:2 pu:1"), (NumaMachine{{{0, {0, 1}}, {1, {2, 3}}}}));
  EXPECT_EQ(ReadNumaMachine("pack:1 numa:1 core:2 pu:2").nodes.size(), 1u);
  EXPECT_EQ(ReadNumaMachine("pack:4 numa:2 core:1 pu:1").nodes.size(), 8u);
  EXPECT_EQ(ReadNumaMachine("nonsense"), NumaMachine());
}

TEST_F(NumaPlaceTest, ChoosesByTheMachine) {
  EXPECT_EQ(NumaPlace::OnSynthetic("numa:2 core:2 pu:1", {.may_run_on = {2, 3}}).node(), 1);
  EXPECT_EQ(NumaPlace::OnSynthetic("numa:1 core:4 pu:1", {.may_run_on = {2, 3}}).node(),
            std::nullopt);
  EXPECT_EQ(NumaPlace::OnSynthetic("nonsense", {.may_run_on = {0}}).node(), std::nullopt);
}

// A machine that is made up binds nothing here, and no memory is harmed.
TEST_F(NumaPlaceTest, OnAMachineThatIsMadeUpDoesNothing) {
  const NumaPlace place = NumaPlace::OnSynthetic("numa:2 core:2 pu:1", {.device_node = 1});
  ASSERT_EQ(place.node(), 1);
  std::byte bytes[100] = {std::byte{7}};
  EXPECT_FALSE(place.Place(absl::MakeSpan(bytes)));
  EXPECT_EQ(bytes[0], std::byte{7});
}

// On this machine, whatever it is: with one node nothing is asked; with several, pages that are
// placed before anybody has touched them are where they were asked to be.
TEST_F(NumaPlaceTest, PlacesMemoryOfThisMachine) {
  const NumaMachine machine = ReadNumaMachine();
  ASSERT_FALSE(machine.nodes.empty());
  constexpr size_t kBytes = 1 << 20;
  for (const NumaNode& node : machine.nodes) {
    void* const mapped =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    const absl::Span<std::byte> memory(static_cast<std::byte*>(mapped), kBytes);
    const NumaPlace place = NumaPlace::OfThisThread(node.number);
    const bool placed = place.Place(memory);
    std::memset(memory.data(), 3, memory.size());
    if (machine.nodes.size() == 1) {
      EXPECT_FALSE(placed);
      EXPECT_EQ(place.node(), std::nullopt);
    } else {
      EXPECT_EQ(place.node(), node.number);
      const std::optional<int> at = place.NodeOfPage(memory.data() + kBytes / 2);
      if (placed && at.has_value()) {
        EXPECT_EQ(*at, node.number);
      }
    }
    EXPECT_TRUE(std::all_of(memory.begin(), memory.end(),
                            [](std::byte byte) { return byte == std::byte{3}; }));
    munmap(mapped, kBytes);
  }
}

TEST(NumaPlaceAnywhere, DoesNothing) {
  NumaPlace place;
  std::byte bytes[10] = {};
  EXPECT_FALSE(place.Place(absl::MakeSpan(bytes)));
  EXPECT_EQ(place.node(), std::nullopt);
  const NumaPlace moved = std::move(place);
  EXPECT_EQ(moved.NodeOfPage(bytes), std::nullopt);
}

}  // namespace
}  // namespace siphon
