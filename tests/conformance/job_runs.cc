#include "tests/conformance/job_runs.h"

#include <stdlib.h>  // mkdtemp
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "launch/checkpoint/checkpoint.h"
#include "launch/config/load_job_config.h"
#include "launch/data/batches.h"
#include "launch/data/dataset.h"
#include "launch/plan_job/learning_rate.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/trainer.h"
#include "planner/keyed_hash.h"
#include "planner/memory/held_bytes.h"
#include "planner/status.h"
#include "tests/launch/run/small_job.h"
#include "tests/support/same_bits.h"

namespace siphon {
namespace {

constexpr int kTextBytes = 20000;

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void WriteText(const std::string& path) {
  KeyedGenerator random(KeyedHash(RandomPurpose::kSyntheticData, {3}));
  std::string text;
  while (text.size() < kTextBytes) text.push_back(static_cast<char>('a' + random.Below(26)));
  std::ofstream(path) << text;
}

absl::StatusOr<ModelSpec> SpecOf(const JobConfig& job) {
  SIPHON_ASSIGN_OR_RETURN(const ModelOptions options, ResolveModelOptions(job));
  return BuildModelSpec(options);
}

StepInputs InputsOf(const Batch& batch, int64_t step) {
  StepInputs inputs{.step = step, .mode = StepMode::kTrain, .target_count = batch.target_count};
  for (const Batch::Microbatch& microbatch : batch.microbatches) {
    inputs.microbatches.push_back(
        {batch.input_spec, batch.target_spec, microbatch.input, microbatch.target});
  }
  return inputs;
}

absl::Status Train(const JobConfig& job, const ModelSpec& spec, const Dataset& data,
                   const reference::AccumulationOrders& accumulation, const ComputeDevice& device,
                   JobResult& result) {
  const TrainConfig& train = job.train;
  const auto seed = static_cast<uint64_t>(train.seed);
  reference::Trainer trainer(spec, {.seed = seed,
                                    .optimizer = train.optimizer,
                                    .weight_decay = train.weight_decay,
                                    .beta1 = train.beta1,
                                    .beta2 = train.beta2,
                                    .momentum = train.momentum,
                                    .clip_norm = train.clip_norm,
                                    .threads = static_cast<int>(job.pipeline.threads_per_worker),
                                    .device = device,
                                    .computed = ComputedType(*ParsePrecision(train.precision)),
                                    .rounds_vectors = job.pipeline.backend == "cuda",
                                    .loss_scale = train.precision == "fp16" ? 65536.0 : 0.0,
                                    .accumulation = accumulation});
  for (int64_t step = 0; step < train.steps; ++step) {
    SIPHON_ASSIGN_OR_RETURN(const Batch batch,
                            TrainingBatch(data, {train.global_batch, train.microbatch}, seed,
                                          step * train.global_batch));
    const reference::StepResult done =
        trainer.Step(InputsOf(batch, step), LearningRateAt(train, step));
    const bool clipped = done.clip_factor < 1;
    if (train.precision == "fp16") result.loss_scales.push_back(done.loss_scale);
    if (!done.skipped && clipped != (train.clip_norm > 0)) {
      return absl::FailedPreconditionError("clipping is not as the job wants it");
    }
    result.losses.push_back(done.loss);
    result.gradient_norms.push_back(done.gradient_norm);
  }
  result.parameters = trainer.Parameters();
  result.first_moments = trainer.FirstMoments();
  result.second_moments = trainer.SecondMoments();
  return absl::OkStatus();
}

// Fills `tensors` with the model's tensors whose names in the checkpoint end in `suffix`.
absl::Status ReadTensors(const Checkpoint& checkpoint, const ModelSpec& spec,
                         const std::string& suffix, reference::NamedValues& tensors) {
  std::vector<CheckpointTensor> wanted;
  for (const Parameter& parameter : CanonicalParameters(spec)) {
    CheckpointTensor tensor{.name = parameter.name + suffix,
                            .optimizer = !suffix.empty(),
                            .spec = {DType::kFloat32, parameter.shape}};
    std::vector<float>& values = tensors[parameter.name];
    values.resize(ElementCount(tensor.spec));
    tensor.bytes = {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(float)};
    wanted.push_back(std::move(tensor));
  }
  return checkpoint.Read(wanted);
}

absl::Status ReadMetrics(const std::string& path, JobResult& result) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("no ", path));
  for (std::string line; std::getline(file, line);) {
    const auto step = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!step.is_object() || !step.contains("loss") || !step.contains("grad_norm")) {
      return absl::InternalError(absl::StrCat(path, ": no step: ", line));
    }
    result.losses.push_back(step["loss"].get<double>());
    // Of a step that was skipped it is no number, which JSON has as null.
    const bool number = step["grad_norm"].is_number();
    result.gradient_norms.push_back(number ? step["grad_norm"].get<double>()
                                           : std::numeric_limits<double>::infinity());
    if (step.contains("loss_scale")) {
      result.loss_scales.push_back(step["loss_scale"].get<double>());
    }
    for (const nlohmann::json& seconds : step["recompute_seconds"]) {
      result.recompute_seconds += seconds.get<double>();
    }
    for (const nlohmann::json& bytes : step["swapped_out_bytes"]["d2d"]) {
      result.out_to_peers += Bytes(bytes.get<int64_t>());
    }
    for (const nlohmann::json& bytes : step["swapped_out_bytes"]["host"]) {
      result.out_to_host += Bytes(bytes.get<int64_t>());
    }
    for (const nlohmann::json& bytes : step["swapped_out_bytes"]["nvme"]) {
      result.out_to_drive += Bytes(bytes.get<int64_t>());
    }
    for (const nlohmann::json& peak : step["peak_bytes"]) {
      result.largest_peak = std::max(result.largest_peak, Bytes(peak.get<int64_t>()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

ScratchFolder::ScratchFolder() {
  path_ = (std::filesystem::temp_directory_path() / "siphon-conformance-XXXXXX").string();
  SIPHON_CHECK(mkdtemp(path_.data()) != nullptr, "the temporary directory may be written");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

JobConfig SmallTextJob(const ScratchFolder& folder, const std::string& run,
                       const std::string& kind) {
  JobConfig job = SmallJob(kind, folder.path() + "/" + run);
  job.data.kind = "text";
  job.data.path = folder.path() + "/text.txt";
  job.output.trace = false;
  job.output.report = false;
  WriteText(job.data.path);
  return job;
}

absl::StatusOr<JobResult> ReferenceResult(const JobConfig& job,
                                          const reference::AccumulationOrders& accumulation,
                                          const OpenTorchDevice& open) {
  SIPHON_ASSIGN_OR_RETURN(const ModelSpec spec, SpecOf(job));
  SIPHON_ASSIGN_OR_RETURN(const Dataset data,
                          OpenDataset({.kind = job.data.kind,
                                       .path = job.data.path,
                                       .sequence_length = job.data.sequence_length,
                                       .validation_fraction = job.data.validation_fraction},
                                      spec));
  JobResult result;
  absl::Status status;
  // On a thread of its own, so that its number of LibTorch threads is not left behind.
  std::thread([&] {
    const std::unique_ptr<TorchDevice> device = open ? open() : nullptr;
    status = Train(job, spec, data, accumulation,
                   device != nullptr ? device->device() : ComputeDevice(), result);
  }).join();
  SIPHON_RETURN_IF_ERROR(status);
  return result;
}

absl::StatusOr<JobResult> ReadResult(const JobConfig& job) {
  JobResult result;
  SIPHON_RETURN_IF_ERROR(ReadMetrics(job.output.directory + "/metrics.jsonl", result));
  SIPHON_ASSIGN_OR_RETURN(const ModelSpec spec, SpecOf(job));
  SIPHON_ASSIGN_OR_RETURN(const std::string newest,
                          NewestCheckpoint(job.output.directory + "/checkpoints"));
  SIPHON_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(newest));
  if (checkpoint.info().step != job.train.steps) {
    return absl::InternalError(absl::StrCat(newest, " is of step ", checkpoint.info().step));
  }
  SIPHON_RETURN_IF_ERROR(ReadTensors(checkpoint, spec, "", result.parameters));
  SIPHON_RETURN_IF_ERROR(ReadTensors(checkpoint, spec, ".exp_avg", result.first_moments));
  SIPHON_RETURN_IF_ERROR(ReadTensors(checkpoint, spec, ".exp_avg_sq", result.second_moments));
  return result;
}

void ExpectSame(const JobResult& expected, const JobConfig& job, int first_step) {
  const auto actual = ReadResult(job);
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_EQ(actual->losses.size(), expected.losses.size() - first_step);
  for (size_t index = 0; index < actual->losses.size(); ++index) {
    SCOPED_TRACE(testing::Message() << "step " << first_step + index);
    EXPECT_TRUE(SameBits(expected.losses[first_step + index], actual->losses[index]));
    const double norm = expected.gradient_norms[first_step + index];
    const bool skipped = !std::isfinite(norm) && !std::isfinite(actual->gradient_norms[index]);
    EXPECT_TRUE(skipped || SameBits(norm, actual->gradient_norms[index]));
  }
  const auto begin = expected.loss_scales.empty() ? 0 : first_step;
  EXPECT_EQ(actual->loss_scales,
            std::vector<double>(expected.loss_scales.begin() + begin, expected.loss_scales.end()));
  EXPECT_TRUE(SameBits(expected.parameters, actual->parameters)) << "parameters";
  EXPECT_TRUE(SameBits(expected.first_moments, actual->first_moments)) << "first moments";
  EXPECT_TRUE(SameBits(expected.second_moments, actual->second_moments)) << "second moments";
}

std::string SavedCheckpoint(const JobConfig& job) {
  return job.output.directory + "/checkpoints/step-0000000" + std::to_string(kSavedStep);
}

absl::StatusOr<RunOutcome> TrainInProcess(const JobConfig& job) { return Trainer(job).Train(); }

absl::Status TrainWithProgram(const JobConfig& job, const ScratchFolder& folder,
                              const std::string& arguments, const std::string& environment) {
  const std::string job_file = folder.path() + "/job.yaml";
  const std::string log_file = folder.path() + "/log.txt";
  std::ofstream(job_file) << WriteJobConfig(job);
  const char* const elsewhere = std::getenv("SIPHON_PROGRAM");
  const std::string program = elsewhere == nullptr ? SIPHON_PROGRAM : elsewhere;
  const std::string command = absl::StrCat(environment, " '", program, "' train '", job_file, "' ",
                                           arguments, " >'", log_file, "' 2>&1");
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(command, ": exit code ", WEXITSTATUS(status), ", status ",
                                          status, "\n", TextOf(log_file)));
}

}  // namespace siphon
