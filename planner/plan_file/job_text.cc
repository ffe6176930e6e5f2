#include "planner/plan_file/job_text.h"

#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan_file/plan_fields.h"
#include "planner/plan_file/plan_keys.h"
#include "planner/status.h"

namespace siphon {
namespace {

struct NameKey {
  absl::string_view key;
  std::string PlanText::*member;
};
constexpr std::array<NameKey, 4> kNames = {{{kModelKey, &PlanText::model},
                                            {kScheduleKey, &PlanText::schedule},
                                            {kStrategyKey, &PlanText::strategy},
                                            {kCostsKey, &PlanText::costs}}};

struct PeaksKey {
  absl::string_view key;
  std::vector<Bytes> PlanPrediction::*member;
};
constexpr std::array<PeaksKey, 2> kPeaks = {
    {{kPeakKey, &PlanPrediction::peak}, {kPeakAtMostKey, &PlanPrediction::peak_at_most}}};

absl::Status ReadCores(const PlanWord& value, std::vector<int64_t>& cores) {
  for (const PlanWord& word : SplitWord(value, ',')) {
    SIPHON_ASSIGN_OR_RETURN(const int together, ParseSmallNumber(word, 1));
    cores.push_back(together);
  }
  return absl::OkStatus();
}

absl::Status ReadWeightRule(const PlanWord& value, WeightRule& rule) {
  if (value.text != kOneGroupBehindWord) {
    return ErrorAt(value, absl::StrCat(kWeightRuleKey, " is ", QuotedWord(value.text),
                                       "; the only rule to name is ", kOneGroupBehindWord));
  }
  rule = WeightRule::kOneGroupBehind;
  return absl::OkStatus();
}

absl::Status ReadSentMemory(const PlanWord& value, SentMemory& sent) {
  if (value.text != kUntilTakenWord) {
    return ErrorAt(value, absl::StrCat(kSentKey, " is ", QuotedWord(value.text),
                                       "; the only rule to name is ", kUntilTakenWord));
  }
  sent = SentMemory::kUntilTaken;
  return absl::OkStatus();
}

absl::Status ReadStreamedMemory(const PlanWord& value, bool& frees_at_waits) {
  if (value.text != kUntilWaitedForWord) {
    return ErrorAt(value, absl::StrCat(kStreamedKey, " is ", QuotedWord(value.text),
                                       "; the only rule to name is ", kUntilWaitedForWord));
  }
  frees_at_waits = true;
  return absl::OkStatus();
}

absl::Status UnknownJobKey(const PlanWord& key) {
  return ErrorAt(
      key, absl::StrCat("unknown key ", QuotedWord(key.text), "; known: ",
                        absl::StrJoin({kModelKey, kScheduleKey, kStrategyKey, kMicrobatchKey,
                                       kGlobalBatchKey, kReplicasKey, kWeightRuleKey, kSentKey,
                                       kStreamedKey, kCostsKey, kCoresTogetherKey},
                                      ", "),
                        ", ", FieldNames(kJobFields)));
}

}  // namespace

std::string JobLines(const PlanText& plan) {
  std::string text = KeyLine(kModelKey, plan.model);
  text += KeyLine(kScheduleKey, plan.schedule);
  if (!plan.strategy.empty()) text += KeyLine(kStrategyKey, plan.strategy);
  text += KeyLine(kMicrobatchKey, absl::StrCat(plan.microbatch));
  text += KeyLine(kGlobalBatchKey, absl::StrCat(plan.global_batch));
  if (plan.training.replicas != 1) {
    text += KeyLine(kReplicasKey, absl::StrCat(plan.training.replicas));
  }
  if (plan.training.weight_rule == WeightRule::kOneGroupBehind) {
    text += KeyLine(kWeightRuleKey, kOneGroupBehindWord);
  }
  text += KeyLine(kCostsKey, plan.costs);
  text += FieldLines(kJobFields, plan);
  if (plan.sent == SentMemory::kUntilTaken) text += KeyLine(kSentKey, kUntilTakenWord);
  if (plan.frees_at_waits) text += KeyLine(kStreamedKey, kUntilWaitedForWord);
  if (!plan.cores_together.empty()) {
    text += KeyLine(kCoresTogetherKey, absl::StrJoin(plan.cores_together, ", "));
  }
  return text;
}

absl::Status ReadJobLine(const PlanPair& pair, PlanText& plan) {
  const absl::string_view key = pair.key.text;
  const PlanWord& value = pair.value;
  for (const NameKey& name : kNames) {
    if (key == name.key) plan.*name.member = std::string(value.text);
    if (key == name.key) return absl::OkStatus();
  }
  if (HasField(kJobFields, key)) return ReadField(kJobFields, pair, plan);
  if (key == kCoresTogetherKey) return ReadCores(value, plan.cores_together);
  if (key == kWeightRuleKey) return ReadWeightRule(value, plan.training.weight_rule);
  if (key == kSentKey) return ReadSentMemory(value, plan.sent);
  if (key == kStreamedKey) return ReadStreamedMemory(value, plan.frees_at_waits);
  if (key == kMicrobatchKey) {
    SIPHON_ASSIGN_OR_RETURN(plan.microbatch, ParseLargeNumber(value, 1));
    return absl::OkStatus();
  }
  if (key == kGlobalBatchKey) {
    SIPHON_ASSIGN_OR_RETURN(plan.global_batch, ParseLargeNumber(value, 1));
    return absl::OkStatus();
  }
  if (key == kReplicasKey) {
    SIPHON_ASSIGN_OR_RETURN(plan.training.replicas, ParseSmallNumber(value, 1));
    return absl::OkStatus();
  }
  return UnknownJobKey(pair.key);
}

std::string PredictedLines(const PlanPrediction& predicted) {
  std::string text = FieldLines(kPredictedFields, predicted);
  const auto append = [](std::string* out, Bytes peak) { absl::StrAppend(out, ExactText(peak)); };
  for (const PeaksKey& peaks : kPeaks) {
    const std::vector<Bytes>& values = predicted.*peaks.member;
    if (!values.empty()) text += KeyLine(peaks.key, absl::StrJoin(values, ", ", append));
  }
  return text;
}

absl::Status ReadPredictedLine(const PlanPair& pair, PlanPrediction& predicted) {
  if (HasField(kPredictedFields, pair.key.text)) {
    return ReadField(kPredictedFields, pair, predicted);
  }
  for (const PeaksKey& peaks : kPeaks) {
    if (pair.key.text != peaks.key) continue;
    for (const PlanWord& word : SplitWord(pair.value, ',')) {
      SIPHON_RETURN_IF_ERROR(TakeFigure(word, (predicted.*peaks.member).emplace_back()));
    }
    return absl::OkStatus();
  }
  return ErrorAt(pair.key, absl::StrCat("unknown key ", QuotedWord(pair.key.text),
                                        "; known: ", FieldNames(kPredictedFields), ", ", kPeakKey,
                                        ", ", kPeakAtMostKey));
}

}  // namespace siphon
