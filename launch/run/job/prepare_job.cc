#include "launch/run/job/prepare_job.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "launch/config/read_schedule_file.h"
#include "launch/mpi_world.h"
#include "launch/plan_job/job_memory.h"
#include "launch/plan_job/model_options.h"
#include "launch/plan_job/plan_job.h"
#include "launch/process/exit_codes.h"
#include "launch/process/sudden_end.h"
#include "launch/profile/plan_with_costs.h"
#include "launch/run/job/fit_memory.h"
#include "launch/topology/job_topology.h"
#include "pipeline/torch/plugin.h"
#include "planner/status.h"

namespace siphon {
namespace {

DatasetOptions OptionsOf(const JobConfig& job) {
  return {.kind = job.data.kind,
          .path = job.data.path,
          .sequence_length = job.data.sequence_length,
          .validation_fraction = job.data.validation_fraction,
          .samples = job.data.samples,
          .seed = static_cast<uint64_t>(job.train.seed)};
}

// Which key to blame for what the data reader refuses.
absl::Status DataError(const JobConfig& job, const absl::Status& status) {
  if (job.data.path.empty()) return ConfigError(job, "data.kind", status.message());
  absl::string_view problem = status.message();
  absl::ConsumePrefix(&problem, "data.path ");
  return ConfigError(job, "data.path", problem);
}

// Its functions run in this process.
LastWords LastWordsOfPlugin(const JobConfig& job) {
  const int rank = StartedUnderMpi() ? AnnouncedRank() : 0;
  const absl::Status place =
      ConfigError(job, "model.library", absl::StrCat("plugin ", job.model.library));
  return {.who = absl::StrCat("siphon: ", place.message()),
          .instead = "a plugin returns a model, or an error",
          .exit_code = kExitBadInput,
          .rank = rank};
}

absl::StatusOr<PlanText> PlanTextOf(const PreparedJob& prepared) {
  const PlannedJob planned{prepared.job, prepared.model.spec, prepared.plan};
  const std::string& path = prepared.job.pipeline.profile;
  if (path.empty()) return PlanWithCosts(planned, {});
  const absl::StatusOr<ProfileFile> profile = LoadProfile(path);
  if (!profile.ok()) {
    return ConfigError(prepared.job, "pipeline.profile", profile.status().message());
  }
  auto plan = PlanWithCosts(planned, {.profile = &*profile});
  if (absl::IsInvalidArgument(plan.status())) {
    return ConfigError(prepared.job, "pipeline.profile", plan.status().message());
  }
  return plan;
}

}  // namespace

absl::StatusOr<ModelOptions> ResolveModelOptions(const JobConfig& job) {
  const auto data_ids = DataVocabulary(OptionsOf(job));
  if (!data_ids.ok()) return DataError(job, data_ids.status());
  return ModelOptionsOf(job, *data_ids);
}

absl::StatusOr<Model> MakeConfiguredModel(const JobConfig& job, const ModelOptions& options) {
  if (job.model.kind == "plugin") {
    const SuddenEndGuard guard(LastWordsOfPlugin(job));
    auto model = LoadPluginModel(job.model.library, options);
    if (!model.ok()) return ConfigError(job, "model.library", model.status().message());
    return model;
  }
  auto model = BuildModel(options);
  if (!model.ok()) return ModelError(job, model.status());
  return model;
}

absl::StatusOr<PreparedJob> PrepareJob(const JobConfig& job, const ModelFactory& factory,
                                       const PlanSearch& search) {
  PreparedJob prepared;
  prepared.job = job;
  SIPHON_RETURN_IF_ERROR(LoadJobTopology(job).status());
  SIPHON_ASSIGN_OR_RETURN(prepared.throttled, LoadThrottledTopology(job));
  SIPHON_ASSIGN_OR_RETURN(const ModelOptions options, ResolveModelOptions(job));
  SIPHON_ASSIGN_OR_RETURN(prepared.model,
                          factory ? factory(options) : MakeConfiguredModel(job, options));
  SIPHON_RETURN_IF_ERROR(ValidateModel(prepared.model));
  prepared.model.spec.options.kind = job.model.kind;  // of a user's own nothing else says it
  const absl::StatusOr<Precision> precision = ParsePrecision(job.train.precision);
  if (!precision.ok()) return ConfigError(job, "train.precision", precision.status().message());
  SetPrecision(*precision, HeldVectorsOf(job.pipeline), prepared.model);
  auto data = OpenDataset(OptionsOf(job), prepared.model.spec);
  if (!data.ok()) return DataError(job, data.status());
  prepared.data = *std::move(data);
  SIPHON_ASSIGN_OR_RETURN(const std::string csv, ReadScheduleFile(job));
  SIPHON_ASSIGN_OR_RETURN(prepared.plan,
                          PlanJob(job, prepared.model.spec, prepared.data.validation_samples, csv));
  SIPHON_RETURN_IF_ERROR(CheckTrainable(job, prepared.plan));
  SIPHON_ASSIGN_OR_RETURN(prepared.plan_text, PlanTextOf(prepared));
  SIPHON_RETURN_IF_ERROR(FitMemory(csv, search, prepared));
  if (prepared.throttled.has_value() && prepared.throttled->drives.empty()) {
    prepared.throttled->drives = prepared.plan_text.topology.drives;
  }
  return prepared;
}

}  // namespace siphon
