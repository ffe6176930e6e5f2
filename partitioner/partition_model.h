#ifndef SIPHON_PARTITIONER_PARTITION_MODEL_H_
#define SIPHON_PARTITIONER_PARTITION_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/model_spec.h"
#include "planner/stage_partition.h"

namespace siphon {

// Cuts `model` into `stages` stages by the named method from partition_methods.def:
//   balanced   smallest possible largest stage by forward FLOPs, exact; of those the most even
//   (least sum of squares).
//              At most O(layers^2 * stages); in practice the ends that a tight limit leaves open
//              are few
//   even       as equal numbers of layers as possible, earlier stages get the surplus
// Errors: NotFound for an unknown method (known ones listed); InvalidArgument when there are more
// stages than layers.
absl::StatusOr<StagePartition> PartitionModel(const ModelSpec& model, int stages,
                                              absl::string_view method);
std::vector<std::string> KnownPartitionMethods();

// The partition with these numbers of layers a stage. Errors: InvalidArgument when they do not sum
// up to the model's layers, naming both sums, or one is not positive.
absl::StatusOr<StagePartition> ExplicitPartition(const ModelSpec& model,
                                                 const std::vector<int>& layers_per_stage);

}  // namespace siphon

#endif  // SIPHON_PARTITIONER_PARTITION_MODEL_H_
