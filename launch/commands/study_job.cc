#include "launch/commands/study_job.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/config/load_job_config.h"
#include "launch/config/read_schedule_file.h"
#include "launch/data/dataset.h"
#include "launch/plan_job/model_options.h"
#include "launch/plan_job/plan_job.h"
#include "launch/topology/job_topology.h"
#include "launch/topology/probe/probed_job.h"
#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/memory/held_bytes.h"
#include "planner/status.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {
namespace {

// Every published value, and machines of any size: nothing will run.
ConfigLimits StudyLimits() {
  ConfigLimits limits;
  limits.known.purpose = JobPurpose::kStudy;
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    limits.known.schedules.push_back(entry.name);
  }
  limits.known.partition_methods = KnownPartitionMethods();
  limits.known.model_kinds = KnownModelKinds();
  limits.known.data_kinds = KnownDataKinds();
#define SIPHON_OPTIMIZER(name, traits) limits.known.optimizers.push_back(name);
#include "pipeline/torch/parameters/optimizers.def"
#undef SIPHON_OPTIMIZER
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    limits.known.memory_strategies.emplace_back(strategy.name);
  }
  return limits;
}

absl::StatusOr<int64_t> DataIds(const JobConfig& job) {
  if (job.data.kind == "tokens" && job.model.vocabulary > 0) return 0;
  auto ids = DataVocabulary({.kind = job.data.kind, .path = job.data.path});
  if (!ids.ok()) {
    return ConfigError(job, "model.vocabulary",
                       absl::StrCat("is not given, and the data does not tell: ",
                                    ids.status().message(), "; write the number of ids"));
  }
  return ids;
}

// Of others planning has no layers: a plugin's are in its library, which it does not run.
absl::Status CheckLayersAreKnown(const JobConfig& job) {
  const ModelConfig& model = job.model;
  std::vector<std::string> known = KnownModelKinds();
  for (const std::string& kind : KnownPlannedModelKinds()) known.push_back(kind);
  if (absl::c_linear_search(known, model.kind)) return absl::OkStatus();
  const std::string names = absl::StrJoin(known, ", ");
  if (model.kind != "plugin") {
    return ConfigError(
        job, "model.kind",
        absl::StrCat("'", model.kind, "' is known, but not built yet; today: ", names));
  }
  return ConfigError(
      job, "model.kind",
      absl::StrCat("plugin: only siphon train and siphon profile load ", model.library,
                   " (model.library) and know its layers; cut what siphon profile measures with "
                   "siphon partition --profile, or write a kind that is planned: ",
                   names));
}

}  // namespace

absl::StatusOr<StudiedJob> StudyJob(const JobArguments& arguments) {
  StudiedJob studied;
  SIPHON_ASSIGN_OR_RETURN(studied.job,
                          LoadJobConfig(arguments.job, arguments.overrides, StudyLimits()));
  SIPHON_RETURN_IF_ERROR(CheckLayersAreKnown(studied.job));
  SIPHON_ASSIGN_OR_RETURN(studied.job, WithProbedTopology(studied.job, UnknownServer::kMeasure));
  SIPHON_ASSIGN_OR_RETURN(studied.topology, LoadJobTopology(studied.job));
  SIPHON_ASSIGN_OR_RETURN(const int64_t ids, DataIds(studied.job));
  SIPHON_ASSIGN_OR_RETURN(const ModelOptions options, ModelOptionsOf(studied.job, ids));
  auto model = BuildModelSpec(options);
  if (!model.ok()) return ModelError(studied.job, model.status());
  const absl::StatusOr<Precision> precision = ParsePrecision(studied.job.train.precision);
  if (!precision.ok()) {
    return ConfigError(studied.job, "train.precision", precision.status().message());
  }
  studied.model = InPrecision(*std::move(model), *precision);
  SIPHON_ASSIGN_OR_RETURN(studied.schedule_csv, ReadScheduleFile(studied.job));
  SIPHON_ASSIGN_OR_RETURN(studied.plan, PlanJob(studied.job, studied.model,
                                                /*validation_samples=*/0, studied.schedule_csv));
  return studied;
}

bool CanTrain(const JobArguments& arguments) {
  ConfigLimits limits = StudyLimits();
  limits.known.purpose = JobPurpose::kRun;
  return LoadJobConfig(arguments.job, arguments.overrides, limits).ok();
}

}  // namespace siphon
