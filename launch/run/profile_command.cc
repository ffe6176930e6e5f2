#include "launch/run/profile_command.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "launch/config/load_job_config.h"
#include "launch/output/text_file.h"
#include "launch/output/text_table.h"
#include "launch/run/job_limits.h"
#include "launch/run/prepare_job.h"
#include "launch/run/profile_layers.h"
#include "planner/status.h"

namespace siphon {
namespace {

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
                      "\na message takes ", FormatNanos(file.transport.latency), " and goes at ",
                      FormatRate(file.transport.rate), "\n");
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

}  // namespace

int ProfileCommand(const ProfileArguments& arguments) {
  const absl::Status status = Profile(arguments);
  return status.ok() ? 0 : ReportError(status);
}

}  // namespace siphon
