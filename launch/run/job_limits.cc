#include "launch/run/job_limits.h"

#include <unistd.h>

#include "launch/data/dataset.h"
#include "launch/run/cuda_machine.h"
#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/model_spec.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {

ConfigLimits MachineLimits(ModelSource source) {
  ConfigLimits limits;
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    limits.known.schedules.push_back(entry.name);
  }
  limits.known.partition_methods = KnownPartitionMethods();
  if (source == ModelSource::kJobFile) {
    limits.known.model_kinds = KnownModelKinds();
    limits.known.model_kinds.push_back("plugin");
  }
  limits.known.data_kinds = KnownDataKinds();
  limits.known.optimizers = KnownOptimizers();
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    limits.known.memory_strategies.emplace_back(strategy.name);
  }
  limits.known.why_no_cuda = WhyNoCuda;
  limits.machine_memory = Bytes(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  return limits;
}

}  // namespace siphon
