#include "planner/plan_file/stage_text.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan_file/group_text.h"
#include "planner/plan_file/plan_fields.h"
#include "planner/plan_file/plan_keys.h"
#include "planner/status.h"

namespace siphon {
namespace {

// A line may give costs to many layers, and stages follow each other: a large number makes no large
// table.
constexpr int kMostLayers = 1 << 14;

absl::Status ReadLayers(const PlanWord& value, StageLines& lines) {
  SIPHON_ASSIGN_OR_RETURN(const PlanRange range, ParseRange(value, kLayersWord));
  if (range.begin != lines.first_layer) {
    return ErrorAt(lines.header, absl::StrCat(lines.header.text, " begins with layer ", range.begin,
                                              "; the next one is ", lines.first_layer));
  }
  lines.stage.layers = {range.begin, range.end};
  return absl::OkStatus();
}

// "3" or "3 to 7" behind "layers".
absl::Status ReadLayerCosts(const PlanPair& pair, const PlanWord& numbers, StageLines& lines) {
  const StageRange& all = lines.stage.layers;
  SIPHON_ASSIGN_OR_RETURN(const PlanRange range, ParseRange(numbers, kLayersWord));
  const int next = all.begin + static_cast<int>(lines.stage.layer_costs.size());
  if (range.begin != next || range.end > all.end) {
    return ErrorAt(
        pair.key,
        absl::StrCat(QuotedWord(pair.key.text), " is out of order; the stage has layers ",
                     all.begin, " to ", all.end - 1, ", and layer ", next, " is the next one"));
  }
  if (range.end > kMostLayers) {
    return ErrorAt(numbers, absl::StrCat("costs are of ", kMostLayers, " layers at most"));
  }
  LayerCost cost;
  SIPHON_RETURN_IF_ERROR(ReadFieldList(kLayerFields, SplitWord(pair.value, ','), cost));
  lines.stage.layer_costs.resize(static_cast<size_t>(range.end - all.begin), cost);
  return absl::OkStatus();
}

absl::Status ReadGroupLine(const PlanPair& pair, const PlanWord& number, StageLines& lines) {
  SIPHON_ASSIGN_OR_RETURN(const int index, ParseSmallNumber(number, 0));
  const size_t next = lines.memory.groups.size();
  if (static_cast<size_t>(index) != next) {
    return ErrorAt(number,
                   absl::StrCat("group ", index, " is out of order; the next one is ", next));
  }
  SIPHON_ASSIGN_OR_RETURN(lines.memory.groups.emplace_back(), ParseGroup(pair.value));
  lines.groups.push_back(pair.value);
  return absl::OkStatus();
}

absl::Status ReadUpdate(const PlanWord& value, StagePlan& memory) {
  if (value.text != kHostWord) {
    return ErrorAt(value, absl::StrCat(kUpdateKey, " is ", QuotedWord(value.text),
                                       "; the only place to name is ", kHostWord));
  }
  memory.update = UpdatePlace::kHost;
  return absl::OkStatus();
}

absl::Status ReadStreamBuffers(const PlanWord& value, StagePlan& memory) {
  SIPHON_ASSIGN_OR_RETURN(memory.stream_buffers, ParseSmallNumber(value, 1));
  if (memory.stream_buffers <= kMostStreamBuffers) return absl::OkStatus();
  return ErrorAt(value, absl::StrCat(kStreamBuffersKey, " is ", memory.stream_buffers, "; ",
                                     kMostStreamBuffers, " is the most"));
}

absl::Status ReadStageKey(const PlanPair& pair, StageLines& lines) {
  const absl::string_view key = pair.key.text;
  const PlanWord& value = pair.value;
  if (key == kNamesKey) {
    return Take<std::string>(std::string(value.text), value, lines.stage.names);
  }
  if (key == kUpdateKey) return ReadUpdate(value, lines.memory);
  if (key == kStreamBuffersKey) return ReadStreamBuffers(value, lines.memory);
  if (key == kWorkerKey) {
    lines.worker = value;
    SIPHON_ASSIGN_OR_RETURN(lines.stage.worker.value, ParseSmallNumber(value, 0));
    return absl::OkStatus();
  }
  if (HasField(kStageFields, key)) return ReadField(kStageFields, pair, lines.stage.cost);
  if (HasField(kHostStepFields, key)) return ReadField(kHostStepFields, pair, lines.stage);
  return ErrorAt(
      pair.key,
      absl::StrCat(
          "unknown key ", QuotedWord(key), "; known: ",
          absl::StrJoin({kWorkerKey, kLayersKey, kNamesKey, kUpdateKey, kStreamBuffersKey}, ", "),
          ", ", FieldNames(kStageFields), ", ", FieldNames(kHostStepFields), ", ", kLayersWord,
          ", ", kGroupWord));
}

}  // namespace

std::string LinesOfStage(const PlanStage& stage, const StagePlan& memory) {
  std::string text = KeyLine(kWorkerKey, absl::StrCat(stage.worker.value));
  text += KeyLine(kLayersKey, absl::StrCat(stage.layers.begin, " to ", stage.layers.end - 1));
  if (!stage.names.empty()) text += KeyLine(kNamesKey, stage.names);
  text += FieldLines(kStageFields, stage.cost) + FieldLines(kHostStepFields, stage);
  if (memory.update == UpdatePlace::kHost) text += KeyLine(kUpdateKey, kHostWord);
  if (memory.stream_buffers != kMostStreamBuffers) {
    text += KeyLine(kStreamBuffersKey, absl::StrCat(memory.stream_buffers));
  }
  const std::vector<LayerCost>& costs = stage.layer_costs;
  for (size_t begin = 0; begin < costs.size();) {
    size_t end = begin + 1;
    while (end < costs.size() && costs[end] == costs[begin]) ++end;
    const PlanRange alike{stage.layers.begin + static_cast<int>(begin),
                          stage.layers.begin + static_cast<int>(end)};
    absl::StrAppend(&text, "  ", RangeText(kLayerWord, alike), ": ",
                    FieldList(kLayerFields, costs[begin]), "\n");
    begin = end;
  }
  for (size_t group = 0; group < memory.groups.size(); ++group) {
    absl::StrAppend(&text, "  ", kGroupWord, " ", group, ": ", GroupText(memory.groups[group]),
                    "\n");
  }
  return text;
}

absl::Status ReadStageLine(const PlanPair& pair, StageLines& lines) {
  const auto [word, numbers] = CutFirstWord(pair.key);
  if (word.text == kGroupWord) return ReadGroupLine(pair, numbers, lines);
  if (pair.key.text == kLayersKey) return ReadLayers(pair.value, lines);
  if (word.text == kLayerWord || word.text == kLayersWord) {
    return ReadLayerCosts(pair, numbers, lines);
  }
  return ReadStageKey(pair, lines);
}

}  // namespace siphon
