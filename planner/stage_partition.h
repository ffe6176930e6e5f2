#ifndef SIPHON_PLANNER_STAGE_PARTITION_H_
#define SIPHON_PLANNER_STAGE_PARTITION_H_

#include <string>
#include <vector>

#include "planner/ids.h"
#include "planner/model_spec.h"

namespace siphon {

// Layers [begin, end) of the model.
struct StageRange {
  int begin = 0;
  int end = 0;
  friend bool operator==(const StageRange&, const StageRange&) = default;
};
constexpr bool Contains(const StageRange& layers, int layer) {
  return layers.begin <= layer && layer < layers.end;
}
constexpr bool Overlap(const StageRange& a, const StageRange& b) {
  return a.begin < b.end && b.begin < a.end;
}

// Every layer in exactly one stage, in order, no stage empty.
struct StagePartition {
  std::vector<StageRange> stages;
  friend bool operator==(const StagePartition&, const StagePartition&) = default;
};

// A parameter that layers in more than one stage use, with the stage of each use (ascending by
// layer).
struct SharedParameter {
  std::string name;
  std::vector<ParameterUse> uses;
  std::vector<StageId> stages;  // stages[i] holds uses[i].layer
};

StageId StageOfLayer(const StagePartition& partition, int layer);
std::vector<SharedParameter> SharedParameters(const ModelSpec& model,
                                              const StagePartition& partition);
// "0: transformer.wte .. transformer.h.1 (3 layers)\n1: ...".
std::string ToString(const StagePartition& partition, const ModelSpec& model);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STAGE_PARTITION_H_
