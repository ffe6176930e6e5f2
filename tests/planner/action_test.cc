#include "planner/action.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace siphon {
namespace {

Action Make(int stage, ActionKind kind, int microbatch = 0) {
  return {StageId(stage), kind, MicrobatchId(microbatch)};
}

TEST(Action, PrintsAndParsesBackEveryKind) {
  const std::vector<std::pair<Action, std::string>> cases = {
      {Make(2, ActionKind::kForward, 5), "2F5"},
      {Make(0, ActionKind::kBackward, 0), "0B0"},
      {Make(11, ActionKind::kBackwardInput, 3), "11I3"},
      {Make(11, ActionKind::kBackwardWeight, 3), "11W3"},
      {Make(0, ActionKind::kSendForward, 1), "0SEND_F1"},
      {Make(1, ActionKind::kReceiveForward, 1), "1RECV_F1"},
      {Make(1, ActionKind::kSendBackward, 1), "1SEND_B1"},
      {Make(0, ActionKind::kReceiveBackward, 1023), "0RECV_B1023"},
      {Make(3, ActionKind::kReduceGradient), "3REDUCE_GRAD"},
      {Make(3, ActionKind::kReduceNorm), "3REDUCE_NORM"},
      {Make(3, ActionKind::kStep), "3STEP"},
  };
  for (const auto& [action, text] : cases) {
    EXPECT_EQ(ToString(action), text);
    const absl::StatusOr<Action> parsed = ParseAction(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, action) << text;
  }
}

TEST(Action, PrintsAndParsesBackTheTensorGroupThatItNames) {
  Action activations = Make(2, ActionKind::kSwapOut, 5);
  activations.group = GroupId(3);
  Action state = Make(2, ActionKind::kSwapInEnd);
  state.microbatch = kNoMicrobatch;
  state.group = GroupId(7);
  Action step = Make(2, ActionKind::kStep);
  step.group = GroupId(7);
  const std::vector<std::pair<Action, std::string>> cases = {
      {activations, "2SWAP_OUT5.3"}, {state, "2SWAP_IN_END.7"}, {step, "2STEP.7"}};
  for (const auto& [action, text] : cases) {
    EXPECT_EQ(ToString(action), text);
    const absl::StatusOr<Action> parsed = ParseAction(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, action) << text;
  }
  EXPECT_TRUE(HasMicrobatch(activations));
  EXPECT_FALSE(HasMicrobatch(state));
  EXPECT_FALSE(HasMicrobatch(step));
}

TEST(Action, BelongsToOneClassOfKinds) {
  EXPECT_TRUE(IsCompute(ActionKind::kBackwardWeight));
  EXPECT_FALSE(IsCommunication(ActionKind::kBackwardWeight));
  EXPECT_TRUE(IsCommunication(ActionKind::kReceiveBackward));
  EXPECT_FALSE(IsCompute(ActionKind::kReceiveBackward));
  EXPECT_TRUE(HasMicrobatch(ActionKind::kReceiveBackward));
  EXPECT_FALSE(IsCompute(ActionKind::kStep));
  EXPECT_FALSE(IsCommunication(ActionKind::kReduceGradient));
  EXPECT_TRUE(IsReduction(ActionKind::kReduceGradient));
  EXPECT_TRUE(IsReduction(ActionKind::kReduceNorm));
  EXPECT_FALSE(IsReduction(ActionKind::kStep));
  EXPECT_FALSE(HasMicrobatch(ActionKind::kReduceNorm));
  EXPECT_TRUE(HasMicrobatch(ActionKind::kUpdate));
  EXPECT_TRUE(IsMemory(ActionKind::kSwapInEnd));
  EXPECT_FALSE(IsMemory(ActionKind::kUpdate));
}

TEST(Action, IgnoresBlanksAround) {
  const absl::StatusOr<Action> parsed = ParseAction("  2F5\r\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, Make(2, ActionKind::kForward, 5));
}

TEST(Action, SaysWhatIsWrongWithAText) {
  const std::string known =
      "; known: F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, REDUCE_GRAD, REDUCE_NORM, STEP, "
      "UPDATE, "
      "SWAP_OUT, SWAP_OUT_END, SWAP_IN, SWAP_IN_END, DROP, RECOMPUTE";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "action '': does not start with the number of a stage"},
      {"F5", "action 'F5': does not start with the number of a stage"},
      {"-1F5", "action '-1F5': does not start with the number of a stage"},
      {"2X5", "action '2X5': unknown kind 'X'" + known},
      {"2f5", "action '2f5': unknown kind 'f'" + known},
      {"2", "action '2': unknown kind ''" + known},
      {"2F", "action '2F': the microbatch is missing"},
      {"2F5x", "action '2F5x': '5x' is not the number of a microbatch"},
      {"2F-5", "action '2F-5': '-5' is not the number of a microbatch"},
      {"2F5.1", "action '2F5.1': F takes no tensor group, but '.1' follows"},
      {"2DROP5.", "action '2DROP5.': '' is not the number of a tensor group"},
      {"2DROP5.x", "action '2DROP5.x': 'x' is not the number of a tensor group"},
      {"2DROP5.99999999999",
       "action '2DROP5.99999999999': tensor group 99999999999 is out of range"},
      {"2DROP", "action '2DROP': the microbatch is missing"},
      {"3STEP1", "action '3STEP1': STEP takes no microbatch, but '1' follows"},
      {"2147483648F0", "action '2147483648F0': stage 2147483648 is out of range"},
      {"0F99999999999", "action '0F99999999999': microbatch 99999999999 is out of range"},
  };
  for (const auto& [text, message] : cases) {
    const absl::StatusOr<Action> parsed = ParseAction(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(parsed.status().message()), message);
  }
}

}  // namespace
}  // namespace siphon
