#include "partitioner/methods.h"

namespace siphon {

StagePartition PartitionEven(const ModelSpec& model, int stages) {
  const int layers = static_cast<int>(model.layers.size());
  StagePartition partition;
  int begin = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const int surplus = stage < layers % stages ? 1 : 0;
    const int end = begin + layers / stages + surplus;
    partition.stages.push_back({begin, end});
    begin = end;
  }
  return partition;
}

}  // namespace siphon
