#include "planner/plan_file/group_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace siphon {
namespace {

// As if it stood at the beginning of line 1.
absl::StatusOr<PlannedGroup> Parsed(absl::string_view text) { return ParseGroup({1, 1, text}); }

std::string Refusal(absl::string_view text) {
  const auto parsed = Parsed(text);
  return parsed.ok() ? "accepted" : std::string(parsed.status().message());
}

TEST(GroupText, SaysWhatTheGroupIsAndWhereItGoes) {
  const PlannedGroup swapped = {
      .group =
          {GroupKind::kActivations, {4, 8}, Bytes(384 << 20), Bytes(12 << 20), Nanos(8'000'000)},
      .choice = {Placement::kPeerSwap,
                 {{DeviceId(1), Bytes(128 << 20)}, {DeviceId(2), Bytes(256 << 20)}},
                 Placement::kRecompute}};
  const std::string text =
      "activations of layers 4 to 7, 384MiB, input 12MiB, recompute_time 8ms, d2d_swap to device "
      "1 128MiB, device 2 256MiB, else recompute";
  EXPECT_EQ(GroupText(swapped), text);
  EXPECT_EQ(*Parsed(text), swapped);

  const PlannedGroup state = {.group = {GroupKind::kOptimizerState, {3, 4}, Bytes(5)},
                              .choice = {.placement = Placement::kHostSwap}};
  EXPECT_EQ(GroupText(state), "optimizer_state of layer 3, 5B, host_swap");
  EXPECT_EQ(*Parsed("optimizer_state  of layers 3 ,5 B,  host_swap"), state);
}

TEST(GroupText, SaysWhatStepsOnTheDeviceAllTheSame) {
  const PlannedGroup state = {
      .group = {GroupKind::kOptimizerState, {3, 4}, Bytes(5)},
      .choice = {Placement::kHostSwap, {}, Placement::kPeerSwap, /*steps_on_device=*/true}};
  EXPECT_EQ(GroupText(state),
            "optimizer_state of layer 3, 5B, host_swap, steps on device, else d2d_swap");
  EXPECT_EQ(*Parsed(GroupText(state)), state);
  EXPECT_THAT(Refusal("optimizer_state of layer 3, 5B, nvme_swap, steps on device"),
              testing::HasSubstr("'steps on device' does not belong here"));
}

TEST(GroupText, SaysHowManyOfALayersTensorsThereAre) {
  const PlannedGroup some = {
      .group = {GroupKind::kActivations, {4, 5}, Bytes(96), Bytes(12), Nanos(8), 5, Bytes(7)},
      .choice = {.placement = Placement::kRecompute}};
  EXPECT_EQ(GroupText(some),
            "activations of layer 4, 96B, first_tensors 5, input 12B, recompute_time 8ns, "
            "workspace 7B, recompute");
  EXPECT_EQ(*Parsed(GroupText(some)), some);
}

TEST(GroupText, NamesOlderWeights) {
  const PlannedGroup versions = {.group = {GroupKind::kWeightVersions, {0, 2}, Bytes(64)},
                                 .choice = {Placement::kPeerSwap, {{DeviceId(3), Bytes(64)}}}};
  EXPECT_EQ(GroupText(versions), "weight_versions of layers 0 to 1, 64B, d2d_swap to device 3 64B");
  EXPECT_EQ(*Parsed(GroupText(versions)), versions);
}

TEST(GroupText, IsReadBackWhateverTheChoice) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    PlannedGroup planned;
    planned.group.kind = static_cast<GroupKind>(random() % kGroupKinds);
    planned.group.layers.begin = static_cast<int>(random() % 100);
    planned.group.layers.end = planned.group.layers.begin + 1 + static_cast<int>(random() % 3);
    planned.group.bytes = Bytes(random());
    if (random() % 2 == 0) planned.group.input = Bytes(random());
    if (random() % 2 == 0) planned.group.recompute = Nanos(random());
    if (random() % 2 == 0) planned.group.first_tensors = static_cast<int>(random() % 9);
    if (random() % 2 == 0) planned.group.workspace = Bytes(random());
    planned.choice.placement = static_cast<Placement>(random() % kPlacements);
    if (planned.choice.placement == Placement::kPeerSwap) {
      for (unsigned left = 1 + random() % 3; left > 0; --left) {
        planned.choice.stripes.push_back({DeviceId(static_cast<int>(left)), Bytes(random())});
      }
    }
    planned.choice.second_choice = static_cast<Placement>(random() % kPlacements);
    planned.choice.steps_on_device =
        planned.choice.placement == Placement::kHostSwap && random() % 2 == 0;
    const auto parsed = Parsed(GroupText(planned));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, planned) << GroupText(planned);
  }
}

TEST(GroupText, NamesThePlaceOfWhatIsWrong) {
  const std::string is_no_group =
      " is no tensor group; write 'activations of layers 4 to 7, 384MiB, host_swap'";
  EXPECT_EQ(Refusal("keep"), "1:1: 'keep'" + is_no_group);
  EXPECT_EQ(Refusal("activations layers 1, 3B, keep"), "1:1: 'activations layers 1'" + is_no_group);
  EXPECT_EQ(Refusal("activations of layer 1, 3B, input 2B"),
            "1:1: 'activations of layer 1, 3B, input 2B'" + is_no_group);
  EXPECT_EQ(Refusal("gradient of layer 1, 3B, keep"),
            "1:1: 'gradient' is no kind of tensors; known: activations, parameters, gradients, "
            "optimizer_state, weight_versions");
  EXPECT_EQ(Refusal("activations of layers 7 to 4, 3B, keep"),
            "1:23: '7 to 4' are no layers; write the first and the last: '0 to 2'");
  EXPECT_EQ(Refusal("activations of layer 1, 3, keep").substr(0, 24), "1:25: '3' has no unit; k");
  EXPECT_EQ(Refusal("activations of layer 1, 3B, swap"),
            "1:29: 'swap' is no choice for a group; known: keep, recompute, d2d_swap, host_swap, "
            "nvme_swap");
  EXPECT_EQ(Refusal("activations of layer 1, 3B, d2d_swap device 1 3B"),
            "1:29: 'd2d_swap device 1 3B' is no choice; write host_swap or 'd2d_swap to device 1 "
            "128MiB, device 2 256MiB'");
  EXPECT_EQ(Refusal("activations of layer 1, 3B, host_swap, device 1 3B"),
            "1:40: 'device 1 3B' does not belong here; behind host_swap may only stand 'else "
            "host_swap' or another second choice");
  EXPECT_EQ(Refusal("activations of layer 1, 3B, d2d_swap to device one 3B"),
            "1:48: 'one' is not a whole number from 0 to 2147483647");
  EXPECT_EQ(Refusal("activations of layer 1, 3B, input 1B, input 1B, keep"),
            "1:39: 'input' stands twice");
}

}  // namespace
}  // namespace siphon
