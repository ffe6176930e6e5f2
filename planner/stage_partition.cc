#include "planner/stage_partition.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {

StageId StageOfLayer(const StagePartition& partition, int layer) {
  for (size_t stage = 0; stage < partition.stages.size(); ++stage) {
    const StageRange& range = partition.stages[stage];
    if (Contains(range, layer)) return StageId(static_cast<int>(stage));
  }
  SIPHON_CHECK(false, "every layer of the model is in a stage");
  return StageId(0);
}

std::vector<SharedParameter> SharedParameters(const ModelSpec& model,
                                              const StagePartition& partition) {
  std::vector<SharedParameter> shared;
  for (const Parameter& parameter : CanonicalParameters(model)) {
    if (parameter.uses.size() < 2) continue;
    SharedParameter candidate{parameter.name, parameter.uses, {}};
    for (const ParameterUse& use : parameter.uses) {
      candidate.stages.push_back(StageOfLayer(partition, use.layer));
    }
    // Uses ascend by layer and stages are consecutive layers, so the ends tell whether all are in
    // one stage.
    if (candidate.stages.front() != candidate.stages.back()) shared.push_back(std::move(candidate));
  }
  return shared;
}

std::string ToString(const StagePartition& partition, const ModelSpec& model) {
  std::string text;
  for (size_t stage = 0; stage < partition.stages.size(); ++stage) {
    const StageRange& range = partition.stages[stage];
    const int layers = range.end - range.begin;
    absl::StrAppend(&text, stage, ": ", model.layers[range.begin].name);
    if (layers > 1) absl::StrAppend(&text, " .. ", model.layers[range.end - 1].name);
    absl::StrAppend(&text, " (", layers, layers == 1 ? " layer" : " layers", ")\n");
  }
  return text;
}

}  // namespace siphon
