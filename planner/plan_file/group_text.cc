#include "planner/plan_file/group_text.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan_file/plan_fields.h"
#include "planner/plan_file/plan_keys.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr absl::string_view kToWord = "to";
constexpr absl::string_view kStepsOnDevice = "steps on device";

// A value of an enum by its name, all of them being 0, 1, ...
template <typename Value>
absl::StatusOr<Value> ParseNamed(const PlanWord& word, int count,
                                 absl::string_view (*name_of)(Value), absl::string_view what) {
  std::vector<absl::string_view> known;
  for (int index = 0; index < count; ++index) {
    const auto value = static_cast<Value>(index);
    if (name_of(value) == word.text) return value;
    known.push_back(name_of(value));
  }
  return ErrorAt(word, absl::StrCat(QuotedWord(word.text), " is no ", what,
                                    "; known: ", absl::StrJoin(known, ", ")));
}

absl::StatusOr<Placement> ParsePlacement(const PlanWord& word) {
  return ParseNamed(word, kPlacements, &PlacementName, "choice for a group");
}

absl::Status NoGroup(const PlanWord& text) {
  return ErrorAt(text, absl::StrCat(QuotedWord(text.text),
                                    " is no tensor group; write 'activations of layers 4 to 7, "
                                    "384MiB, host_swap'"));
}

// "activations of layers 4 to 7"
absl::Status ReadTensors(const PlanWord& text, TensorGroup& group) {
  const auto [kind, behind_kind] = CutFirstWord(text);
  SIPHON_ASSIGN_OR_RETURN(group.kind,
                          ParseNamed(kind, kGroupKinds, &GroupKindName, "kind of tensors"));
  const auto [of, layers] = CutFirstWord(behind_kind);
  const auto [word, numbers] = CutFirstWord(layers);
  if (of.text != kOfWord || (word.text != kLayerWord && word.text != kLayersWord)) {
    return NoGroup(text);
  }
  SIPHON_ASSIGN_OR_RETURN(const PlanRange range, ParseRange(numbers, kLayersWord));
  group.layers = {range.begin, range.end};
  return absl::OkStatus();
}

// "1 128MiB", behind "device"
absl::Status ReadStripe(const PlanWord& text, std::vector<Stripe>& stripes) {
  const auto [device, bytes] = CutFirstWord(text);
  Stripe stripe;
  SIPHON_ASSIGN_OR_RETURN(stripe.lender.value, ParseSmallNumber(device, 0));
  SIPHON_RETURN_IF_ERROR(TakeFigure(bytes, stripe.bytes));
  stripes.push_back(stripe);
  return absl::OkStatus();
}

// "host_swap", or "d2d_swap to device 1 128MiB"
absl::Status ReadChoice(const PlanWord& text, GroupChoice& choice) {
  const auto [placement, target] = CutFirstWord(text);
  SIPHON_ASSIGN_OR_RETURN(choice.placement, ParsePlacement(placement));
  const bool to_peers = choice.placement == Placement::kPeerSwap;
  if (!to_peers && target.text.empty()) return absl::OkStatus();
  const auto [to, lender] = CutFirstWord(target);
  const auto [device, stripe] = CutFirstWord(lender);
  if (!to_peers || to.text != kToWord || device.text != kDeviceWord) {
    return ErrorAt(text, absl::StrCat(QuotedWord(text.text), " is no choice; write host_swap or '",
                                      PlacementName(Placement::kPeerSwap),
                                      " to device 1 128MiB, device 2 256MiB'"));
  }
  return ReadStripe(stripe, choice.stripes);
}

// What follows the choice: more stripes, or where it steps, then the second choice.
absl::Status ReadBehindChoice(const std::vector<PlanWord>& list, size_t next, GroupChoice& choice) {
  for (; next < list.size(); ++next) {
    const auto [word, rest] = CutFirstWord(list[next]);
    if (word.text == kDeviceWord && choice.placement == Placement::kPeerSwap) {
      SIPHON_RETURN_IF_ERROR(ReadStripe(rest, choice.stripes));
      continue;
    }
    if (list[next].text == kStepsOnDevice && choice.placement == Placement::kHostSwap) {
      choice.steps_on_device = true;
      continue;
    }
    if (word.text != kElseWord || next + 1 != list.size()) {
      return ErrorAt(
          list[next],
          absl::StrCat(QuotedWord(list[next].text), " does not belong here; behind ",
                       PlacementName(choice.placement),
                       choice.stripes.empty() ? " may only" : " and its devices may only",
                       " stand 'else host_swap' or another second choice"));
    }
    SIPHON_ASSIGN_OR_RETURN(choice.second_choice, ParsePlacement(rest));
  }
  return absl::OkStatus();
}

}  // namespace

std::string GroupText(const PlannedGroup& planned) {
  const auto& [group, choice] = planned;
  std::string text = absl::StrCat(GroupKindName(group.kind), " ", kOfWord, " ",
                                  RangeText(kLayerWord, {group.layers.begin, group.layers.end}),
                                  ", ", ExactText(group.bytes));
  const std::string figures = FieldList(kGroupFields, group);
  if (!figures.empty()) absl::StrAppend(&text, ", ", figures);
  absl::StrAppend(&text, ", ", PlacementName(choice.placement));
  for (size_t index = 0; index < choice.stripes.size(); ++index) {
    const Stripe& stripe = choice.stripes[index];
    absl::StrAppend(&text, index == 0 ? absl::StrCat(" ", kToWord, " ") : ", ", kDeviceWord, " ",
                    stripe.lender.value, " ", ExactText(stripe.bytes));
  }
  if (choice.steps_on_device) absl::StrAppend(&text, ", ", kStepsOnDevice);
  if (choice.second_choice != Placement::kKeep) {
    absl::StrAppend(&text, ", ", kElseWord, " ", PlacementName(choice.second_choice));
  }
  return text;
}

absl::StatusOr<PlannedGroup> ParseGroup(const PlanWord& text) {
  const std::vector<PlanWord> list = SplitWord(text, ',');
  if (list.size() < 3) return NoGroup(text);
  PlannedGroup planned;
  SIPHON_RETURN_IF_ERROR(ReadTensors(list[0], planned.group));
  SIPHON_RETURN_IF_ERROR(TakeFigure(list[1], planned.group.bytes));
  std::vector<PlanWord> figures;
  size_t next = 2;
  for (; next < list.size() && HasField(kGroupFields, CutFirstWord(list[next]).first.text);
       ++next) {
    figures.push_back(list[next]);
  }
  SIPHON_RETURN_IF_ERROR(ReadFieldList(kGroupFields, figures, planned.group));
  if (next == list.size()) return NoGroup(text);
  SIPHON_RETURN_IF_ERROR(ReadChoice(list[next], planned.choice));
  SIPHON_RETURN_IF_ERROR(ReadBehindChoice(list, next + 1, planned.choice));
  return planned;
}

}  // namespace siphon
