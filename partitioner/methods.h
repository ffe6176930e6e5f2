#ifndef SIPHON_PARTITIONER_METHODS_H_
#define SIPHON_PARTITIONER_METHODS_H_

#include "planner/model_spec.h"
#include "planner/stage_partition.h"

namespace siphon {

// One function for each row of the table. PartitionModel has checked that 1 <= stages <= layers.
#define SIPHON_PARTITION_METHOD(name, method) \
  StagePartition method(const ModelSpec& model, int stages);
#include "partitioner/partition_methods.def"
#undef SIPHON_PARTITION_METHOD

}  // namespace siphon

#endif  // SIPHON_PARTITIONER_METHODS_H_
