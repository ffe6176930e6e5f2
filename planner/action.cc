#include "planner/action.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/status.h"

namespace siphon {
namespace {

enum class ActionClass { kCompute, kCommunication, kReduction, kMemory, kStep, kUpdate };

struct KindRow {
  ActionKind kind;
  absl::string_view name;
  ActionClass action_class;
};

constexpr std::array<KindRow, kActionKinds> kKinds = {{
    {ActionKind::kForward, "F", ActionClass::kCompute},
    {ActionKind::kBackward, "B", ActionClass::kCompute},
    {ActionKind::kBackwardInput, "I", ActionClass::kCompute},
    {ActionKind::kBackwardWeight, "W", ActionClass::kCompute},
    {ActionKind::kSendForward, "SEND_F", ActionClass::kCommunication},
    {ActionKind::kReceiveForward, "RECV_F", ActionClass::kCommunication},
    {ActionKind::kSendBackward, "SEND_B", ActionClass::kCommunication},
    {ActionKind::kReceiveBackward, "RECV_B", ActionClass::kCommunication},
    {ActionKind::kReduceGradient, "REDUCE_GRAD", ActionClass::kReduction},
    {ActionKind::kReduceNorm, "REDUCE_NORM", ActionClass::kReduction},
    {ActionKind::kStep, "STEP", ActionClass::kStep},
    {ActionKind::kUpdate, "UPDATE", ActionClass::kUpdate},
    {ActionKind::kSwapOut, "SWAP_OUT", ActionClass::kMemory},
    {ActionKind::kSwapOutEnd, "SWAP_OUT_END", ActionClass::kMemory},
    {ActionKind::kSwapIn, "SWAP_IN", ActionClass::kMemory},
    {ActionKind::kSwapInEnd, "SWAP_IN_END", ActionClass::kMemory},
    {ActionKind::kDrop, "DROP", ActionClass::kMemory},
    {ActionKind::kRecompute, "RECOMPUTE", ActionClass::kMemory},
}};

const KindRow& RowOf(ActionKind kind) {
  const KindRow& row = kKinds[static_cast<size_t>(kind)];
  SIPHON_CHECK(row.kind == kind, "the rows of kKinds stand in the order of ActionKind");
  return row;
}

absl::Status BadAction(absl::string_view text, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("action '", text, "': ", problem));
}

// The longest prefix of `text` whose characters satisfy `accepts`.
template <typename Accepts>
absl::string_view Prefix(absl::string_view text, Accepts accepts) {
  size_t end = 0;
  while (end < text.size() && accepts(static_cast<unsigned char>(text[end]))) ++end;
  return text.substr(0, end);
}

bool IsDigit(unsigned char c) { return absl::ascii_isdigit(c); }
bool IsKindLetter(unsigned char c) { return absl::ascii_isalpha(c) || c == '_'; }

// `group` is what follows the point.
absl::StatusOr<GroupId> ParseGroup(absl::string_view text, const KindRow& kind,
                                   absl::string_view group) {
  if (!TakesGroup(kind.kind)) {
    return BadAction(text,
                     absl::StrCat(kind.name, " takes no tensor group, but '.", group, "' follows"));
  }
  GroupId id;
  if (group.empty() || Prefix(group, IsDigit).size() != group.size()) {
    return BadAction(text, absl::StrCat("'", group, "' is not the number of a tensor group"));
  }
  if (!absl::SimpleAtoi(group, &id.value)) {
    return BadAction(text, absl::StrCat("tensor group ", group, " is out of range"));
  }
  return id;
}

absl::StatusOr<MicrobatchId> ParseMicrobatch(absl::string_view text, const KindRow& kind,
                                             absl::string_view microbatch, GroupId group) {
  MicrobatchId id;
  if (!HasMicrobatch(kind.kind)) {
    if (microbatch.empty()) return id;
    return BadAction(
        text, absl::StrCat(kind.name, " takes no microbatch, but '", microbatch, "' follows"));
  }
  if (microbatch.empty()) {
    if (group != kWholeStage) return kNoMicrobatch;
    return BadAction(text, "the microbatch is missing");
  }
  if (Prefix(microbatch, IsDigit).size() != microbatch.size()) {
    return BadAction(text, absl::StrCat("'", microbatch, "' is not the number of a microbatch"));
  }
  if (!absl::SimpleAtoi(microbatch, &id.value)) {
    return BadAction(text, absl::StrCat("microbatch ", microbatch, " is out of range"));
  }
  return id;
}

}  // namespace

absl::string_view ActionKindName(ActionKind kind) { return RowOf(kind).name; }

bool HasMicrobatch(ActionKind kind) {
  const ActionClass action_class = RowOf(kind).action_class;
  return action_class != ActionClass::kReduction && action_class != ActionClass::kStep;
}
bool IsCompute(ActionKind kind) { return RowOf(kind).action_class == ActionClass::kCompute; }
bool IsCommunication(ActionKind kind) {
  return RowOf(kind).action_class == ActionClass::kCommunication;
}
bool IsReduction(ActionKind kind) { return RowOf(kind).action_class == ActionClass::kReduction; }
bool IsMemory(ActionKind kind) { return RowOf(kind).action_class == ActionClass::kMemory; }

bool HasMicrobatch(const Action& action) {
  return HasMicrobatch(action.kind) && action.microbatch != kNoMicrobatch;
}
bool TakesGroup(ActionKind kind) { return IsMemory(kind) || kind == ActionKind::kStep; }

std::string ToString(const Action& action) {
  std::string text = absl::StrCat(action.stage.value, ActionKindName(action.kind));
  if (HasMicrobatch(action)) absl::StrAppend(&text, action.microbatch.value);
  if (action.group != kWholeStage) absl::StrAppend(&text, ".", action.group.value);
  return text;
}

absl::StatusOr<Action> ParseAction(absl::string_view original) {
  const absl::string_view text = absl::StripAsciiWhitespace(original);
  const absl::string_view stage = Prefix(text, IsDigit);
  const absl::string_view kind_name = Prefix(text.substr(stage.size()), IsKindLetter);
  const absl::string_view rest = text.substr(stage.size() + kind_name.size());
  if (stage.empty()) return BadAction(text, "does not start with the number of a stage");

  Action action;
  if (!absl::SimpleAtoi(stage, &action.stage.value)) {
    return BadAction(text, absl::StrCat("stage ", stage, " is out of range"));
  }
  const KindRow* row = nullptr;
  for (const KindRow& candidate : kKinds) {
    if (candidate.name == kind_name) row = &candidate;
  }
  if (row == nullptr) {
    const auto append_name = [](std::string* out, const KindRow& known) {
      absl::StrAppend(out, known.name);
    };
    return BadAction(text, absl::StrCat("unknown kind '", kind_name,
                                        "'; known: ", absl::StrJoin(kKinds, ", ", append_name)));
  }
  action.kind = row->kind;
  const size_t dot = std::min(rest.find('.'), rest.size());
  if (dot < rest.size()) {
    SIPHON_ASSIGN_OR_RETURN(action.group, ParseGroup(text, *row, rest.substr(dot + 1)));
  }
  SIPHON_ASSIGN_OR_RETURN(action.microbatch,
                          ParseMicrobatch(text, *row, rest.substr(0, dot), action.group));
  return action;
}

}  // namespace siphon
