#include "partitioner/partition_model.h"

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "partitioner/methods.h"

namespace siphon {
namespace {

struct MethodRow {
  absl::string_view name;
  StagePartition (*method)(const ModelSpec& model, int stages);
};

constexpr MethodRow kMethods[] = {
#define SIPHON_PARTITION_METHOD(name, method) {name, method},
#include "partitioner/partition_methods.def"
#undef SIPHON_PARTITION_METHOD
};

}  // namespace

absl::StatusOr<StagePartition> PartitionModel(const ModelSpec& model, int stages,
                                              absl::string_view method) {
  const auto layers = static_cast<int64_t>(model.layers.size());
  for (const MethodRow& row : kMethods) {
    if (row.name != method) continue;
    if (stages < 1) {
      return absl::InvalidArgumentError(absl::StrCat(stages, " stages; there must be at least 1"));
    }
    if (stages > layers) {
      return absl::InvalidArgumentError(absl::StrCat(stages, " stages, but the model has only ",
                                                     layers, layers == 1 ? " layer" : " layers",
                                                     " and every stage needs at least one"));
    }
    return row.method(model, stages);
  }
  return absl::NotFoundError(absl::StrCat("unknown partition method '", method, "'; known: ",
                                          absl::StrJoin(KnownPartitionMethods(), ", ")));
}

std::vector<std::string> KnownPartitionMethods() {
  std::vector<std::string> names;
  for (const MethodRow& row : kMethods) names.emplace_back(row.name);
  return names;
}

absl::StatusOr<StagePartition> ExplicitPartition(const ModelSpec& model,
                                                 const std::vector<int>& layers_per_stage) {
  const std::string text = absl::StrCat("[", absl::StrJoin(layers_per_stage, ", "), "]");
  for (size_t stage = 0; stage < layers_per_stage.size(); ++stage) {
    if (layers_per_stage[stage] > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("partition ", text, ": stage ", stage, " has ",
                                                   layers_per_stage[stage],
                                                   " layers; there must be at least 1"));
  }
  const int64_t sum = std::accumulate(layers_per_stage.begin(), layers_per_stage.end(), int64_t{0});
  if (sum != static_cast<int64_t>(model.layers.size())) {
    return absl::InvalidArgumentError(absl::StrCat("partition ", text, " adds up to ", sum,
                                                   " layers, but the model has ",
                                                   model.layers.size()));
  }
  StagePartition partition;
  int begin = 0;
  for (const int layers : layers_per_stage) {
    partition.stages.push_back({begin, begin + layers});
    begin += layers;
  }
  return partition;
}

}  // namespace siphon
