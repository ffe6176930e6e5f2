#include "launch/run/layer_profile/profile_command.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/config/load_job_config.h"
#include "launch/output/text_file.h"
#include "launch/output/text_table.h"
#include "launch/process/machine_memory.h"
#include "launch/profile/device_file.h"
#include "launch/profile/machine.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/job_limits.h"
#include "launch/run/layer_profile/profile_layers.h"
#include "pipeline/torch/device/cpu_rates.h"
#include "planner/status.h"

namespace siphon {
namespace {

// "2 workers at once get 1.74 times as much done as one\n"
std::string CoresText(const CoreSharing& together) {
  if (together.size() < 2) return "";
  return absl::StrFormat("%d workers at once get %.2f times as much done as one\n", together.size(),
                         static_cast<double>(together.back()) / 1000);
}

std::string Summary(const ProfileFile& file) {
  std::vector<std::vector<std::string>> rows;
  for (const LayerProfile& layer : file.model.layers) {
    rows.push_back({layer.name, FormatNanos(layer.forward), FormatNanos(layer.input_backward),
                    FormatNanos(layer.weight_backward), FormatNanos(layer.optimizer),
                    FormatBytes(layer.parameters), FormatBytes(SavedBytes(layer)),
                    FormatBytes(layer.boundary)});
  }
  return absl::StrCat(file.model.model, " on ", file.model.device, ", microbatches of ",
                      file.model.microbatch, "\n\n",
                      TextTable({"layer", "forward", "input backward", "weight backward",
                                 "optimizer", "parameters", "saved", "boundary"},
                                rows),
                      "\na message takes ", FormatNanos(file.transport.latency),
                      ", each copy of it ", FormatRate(file.transport.copy_rate),
                      ", a core copies tensors at ", FormatRate(file.transport.swap_rate), "\n",
                      CoresText(file.cores_together));
}

std::string SummaryJson(const ProfileFile& file, const std::string& output) {
  using Json = nlohmann::ordered_json;
  Json json = {{"profile", output}, {"device", file.model.device}, {"layers", Json::array()}};
  for (const LayerProfile& layer : file.model.layers) {
    json["layers"].push_back({{"name", layer.name},
                              {"forward_ns", layer.forward.value},
                              {"input_backward_ns", layer.input_backward.value},
                              {"weight_backward_ns", layer.weight_backward.value},
                              {"optimizer_ns", layer.optimizer.value},
                              {"saved_bytes", SavedBytes(layer).value}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status Profile(const ProfileArguments& arguments) {
  SIPHON_ASSIGN_OR_RETURN(const JobConfig job, LoadJobConfig(arguments.job, arguments.overrides,
                                                             MachineLimits(ModelSource::kJobFile)));
  if (job.pipeline.backend == "cuda") {
    return ConfigError(
        job, "pipeline.backend",
        "layers are measured on the CPU only; a profile of them says nothing of cuda");
  }
  SIPHON_ASSIGN_OR_RETURN(const PreparedJob prepared, PrepareJob(job, {}));
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto told = [terminal](int done, int all) {
    if (terminal) std::fprintf(stderr, "\rround %d of %d%s", done, all, done == all ? "\n" : "");
  };
  SIPHON_ASSIGN_OR_RETURN(const ProfileFile file,
                          ProfileLayers(prepared, {.repetitions = arguments.repetitions}, told));
  SIPHON_RETURN_IF_ERROR(WriteTextFile(arguments.output, WriteProfile(file)));
  const bool json = arguments.format == OutputFormat::kJson;
  std::fputs((json ? SummaryJson(file, arguments.output) : Summary(file)).c_str(), stdout);
  return absl::OkStatus();
}

std::string CalibrationText(const CpuCalibration& measured) {
  return absl::StrFormat("%s: matrix products %.1f GFLOP/s, copies %s, an operation %s, %s\n",
                         measured.name, static_cast<double>(measured.product_flops) / 1e9,
                         FormatRate(measured.copy_bandwidth),
                         FormatNanos(measured.operation_overhead), FormatBytes(measured.memory));
}

std::string CalibrationJson(const CpuCalibration& measured, const std::string& output) {
  using Json = nlohmann::ordered_json;
  const Json json = {{"device_file", output},
                     {"name", measured.name},
                     {"product_flops_per_second", measured.product_flops},
                     {"copy_bytes_per_second", measured.copy_bandwidth.value},
                     {"operation_overhead_ns", measured.operation_overhead.value},
                     {"memory_bytes", measured.memory.value}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status Calibrate(const ProfileArguments& arguments) {
  const int threads = arguments.threads;
  SIPHON_ASSIGN_OR_RETURN(const CpuRates rates, MeasureCpuRates(threads));
  const CpuCalibration measured{.name = NameWithThreads(threads),
                                .product_flops = rates.product_flops,
                                .copy_bandwidth = rates.copy_bandwidth,
                                .operation_overhead = rates.operation_overhead,
                                .memory = MachineMemory()};
  SIPHON_RETURN_IF_ERROR(WriteTextFile(arguments.output, WriteCalibration(measured)));
  const bool json = arguments.format == OutputFormat::kJson;
  const std::string text =
      json ? CalibrationJson(measured, arguments.output) : CalibrationText(measured);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

int ProfileCommand(const ProfileArguments& arguments) {
  absl::Status status = CheckOutputs({{"--output", arguments.output}});
  if (status.ok()) status = arguments.calibrate ? Calibrate(arguments) : Profile(arguments);
  return status.ok() ? 0 : ReportError(status);
}

}  // namespace siphon
