// siphon out_of_core: what training costs when a batch does not fit in one device's memory.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/commands/command.h"
#include "launch/commands/out_of_core_report.h"
#include "launch/output/text_file.h"
#include "launch/process/exit_codes.h"
#include "launch/profile/device_file.h"
#include "planner/model_spec.h"
#include "planner/performance/device_spec.h"
#include "planner/performance/profile_from_first_principles.h"
#include "planner/status.h"

namespace siphon {
namespace {

// What a call of an asynchronous copy costs, measured: 5 to 7 us.
constexpr absl::string_view kCopyLatency = "7us";

// GPT-2 medium, unless said otherwise.
ModelOptions PublishedSizes() {
  ModelOptions options;
  options.kind = "vgg16";
  options.layers = 24;
  options.hidden = 1024;
  options.heads = 16;
  options.vocabulary = 50257;
  options.sequence_length = 1024;
  return options;
}

struct OutOfCoreArguments {
  std::optional<int> figure;  // absent: one model is compared
  std::string output;
  ModelOptions model = PublishedSizes();
  std::vector<std::string> sizes;  // those of its flags that were given
  std::string device = "A100";
  std::string precision = "fp32";
  int64_t batch = 64;
  std::string link;
  std::string far_memory;
  std::string latency{kCopyLatency};
  std::string capacity;
  OutputFormat format = OutputFormat::kText;
};

int RefuseSize(const absl::Status& status) {
  const int code = ReportError(status);
  return absl::IsResourceExhausted(status) ? kExitDoesNotFit : code;
}

int PrintFigure(int number, const OutOfCoreArguments& arguments) {
  const auto figure = PublishedFigure(number);
  if (!figure.ok()) return ReportError(figure.status());
  if (!arguments.output.empty()) {
    const absl::Status written = WriteTextFile(arguments.output, FigureSvg(*figure));
    if (!written.ok()) return ReportError(written);
  }
  const bool json = arguments.format == OutputFormat::kJson;
  std::fputs((json ? FigureJson(*figure) : FigureText(*figure)).c_str(), stdout);
  return kExitDone;
}

absl::StatusOr<BytesPerSecond> PositiveRate(const std::string& flag, const std::string& text) {
  const auto rate = ParseRate(text);
  if (!rate.ok()) return Annotate(rate.status(), flag);
  if (rate->value > 0) return *rate;
  return absl::InvalidArgumentError(absl::StrCat(flag, ": '", text, "' must be more than 0"));
}

// Equation 5: the slowest of far memory, near memory and the link; the first and the last as given.
absl::StatusOr<FarMemoryPath> PathOf(const OutOfCoreArguments& arguments,
                                     const DeviceSpec& device) {
  BytesPerSecond link = device.host_link;
  if (!arguments.link.empty()) {
    SIPHON_ASSIGN_OR_RETURN(link, PositiveRate("--link", arguments.link));
  }
  if (link.value == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "device '", device.name, "' has no link to a far memory; give its rate: --link 12GB/s"));
  }
  BytesPerSecond far = link;
  if (!arguments.far_memory.empty()) {
    SIPHON_ASSIGN_OR_RETURN(far, PositiveRate("--far_memory", arguments.far_memory));
  }
  const BytesPerSecond rate = SwapRate(far, device.memory_bandwidth, link);
  const auto latency = ParseNanos(arguments.latency);
  if (!latency.ok()) return Annotate(latency.status(), "--latency");
  return FarMemoryPath{rate, rate, *latency};
}

absl::StatusOr<Bytes> NearMemoryOf(const OutOfCoreArguments& arguments, const DeviceSpec& device) {
  if (arguments.capacity.empty()) return device.capacity;
  const auto capacity = ParseBytes(arguments.capacity);
  if (!capacity.ok()) return Annotate(capacity.status(), "--capacity");
  return *capacity;
}

// A size that the model would ignore is a mistake of whoever gave it.
absl::Status CheckSizes(const OutOfCoreArguments& arguments) {
  const std::string& kind = arguments.model.kind;
  const std::vector<std::string> fixed = KnownPlannedModelKinds();
  if (arguments.sizes.empty() || !absl::c_linear_search(fixed, kind)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(arguments.sizes.front(), ": ", kind, " is always of the same layers; leave it ",
                   "out, or take --model ", absl::StrJoin(KnownModelKinds(), ", ")));
}

struct Compared {
  OutOfCoreSetting setting;
  OutOfCoreComparison comparison;
};

absl::StatusOr<Compared> Compare(const OutOfCoreArguments& arguments) {
  SIPHON_RETURN_IF_ERROR(CheckSizes(arguments));
  Compared compared;
  SIPHON_ASSIGN_OR_RETURN(const DeviceSpec device, LoadDevice(arguments.device));
  SIPHON_ASSIGN_OR_RETURN(const Precision precision, ParsePrecision(arguments.precision));
  SIPHON_ASSIGN_OR_RETURN(const ModelSpec model, BuildModelSpec(arguments.model));
  SIPHON_ASSIGN_OR_RETURN(const ModelProfile profile,
                          ProfileFromFirstPrinciples(model, device, arguments.batch, precision));
  compared.setting.model = arguments.model.kind;
  compared.setting.device = device.name;
  compared.setting.precision = arguments.precision;
  compared.setting.batch = arguments.batch;
  SIPHON_ASSIGN_OR_RETURN(compared.setting.path, PathOf(arguments, device));
  SIPHON_ASSIGN_OR_RETURN(compared.setting.near_memory, NearMemoryOf(arguments, device));
  SIPHON_ASSIGN_OR_RETURN(compared.comparison, CompareOutOfCore(profile, compared.setting.path,
                                                                compared.setting.near_memory));
  return compared;
}

int RunOutOfCore(const OutOfCoreArguments& arguments) {
  if (arguments.figure.has_value()) return PrintFigure(*arguments.figure, arguments);
  if (!arguments.output.empty()) {
    return ReportError(
        absl::InvalidArgumentError("--output: only a figure is drawn; add --figure"));
  }
  const auto compared = Compare(arguments);
  if (!compared.ok()) return RefuseSize(compared.status());
  const bool json = arguments.format == OutputFormat::kJson;
  const auto print = json ? ComparisonJson : ComparisonText;
  std::fputs(print(compared->setting, compared->comparison).c_str(), stdout);
  return kExitDone;
}

void AddModel(CLI::App* command, OutOfCoreArguments* arguments) {
  ModelOptions& model = arguments->model;
  std::vector<std::string> kinds = KnownModelKinds();
  for (const std::string& kind : KnownPlannedModelKinds()) kinds.push_back(kind);
  command->add_option("--model", model.kind, absl::StrCat("One of ", absl::StrJoin(kinds, ", ")))
      ->capture_default_str()
      ->type_name("NAME");
  const auto add_size = [&](const std::string& flag, int64_t& size, const std::string& meaning) {
    command->add_option(flag, size, meaning)
        ->each([arguments, flag](const std::string&) { arguments->sizes.push_back(flag); })
        ->capture_default_str()
        ->type_name("N");
  };
  add_size("--layers", model.layers, "Of a transformer or perceptron");
  add_size("--hidden", model.hidden, "Likewise");
  add_size("--heads", model.heads, "Of a transformer");
  add_size("--sequence_length", model.sequence_length, "Of a transformer or perceptron, tokens");
}

}  // namespace

RunCommand AddOutOfCoreCommand(CLI::App& app) {
  const auto arguments = std::make_shared<OutOfCoreArguments>();
  CLI::App* command = app.add_subcommand(
      "out_of_core", "Predict training with more than one device's memory, without a profile");
  command
      ->add_option("--figure", arguments->figure,
                   "Calculate figure 5, 7 or 8 of the out-of-core paper (Zhang et al. 2019)")
      ->type_name("N");
  command->add_option("--output", arguments->output, "Draw the figure into this SVG file")
      ->type_name("plot.svg");
  AddModel(command, arguments.get());
  command
      ->add_option("--device", arguments->device,
                   absl::StrCat("One of ", absl::StrJoin(KnownDeviceSpecs(), ", "),
                                ", or a file of siphon profile --calibrate"))
      ->capture_default_str()
      ->type_name("NAME|FILE");
  command->add_option("--batch", arguments->batch, "Samples of one forward and backward")
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--precision", arguments->precision, "fp32, bf16 or fp16")
      ->capture_default_str()
      ->type_name("NAME");
  command
      ->add_option(
          "--link", arguments->link,
          "Throughput to far memory, each way; default: the device's host copies, measured")
      ->type_name("12GB/s");
  command
      ->add_option("--far_memory", arguments->far_memory,
                   "Throughput of far memory; default: no less than the link")
      ->type_name("12GB/s");
  command->add_option("--latency", arguments->latency, "Of each copy")
      ->capture_default_str()
      ->type_name("TIME");
  command->add_option("--capacity", arguments->capacity, "Near memory; default: the device's own")
      ->type_name("16GB");
  AddFormat(command, &arguments->format);
  command->footer(
      "Strategies: vDNN-like moves every layer and synchronises after each; vDNN++-like does not "
      "synchronise;\ncapacity-based moves only what does not fit; unified memory pages. Exit code "
      "3 "
      "when weights, gradients,\noptimizer state and workspace alone do not fit.");
  return [arguments] { return RunOutOfCore(*arguments); };
}

}  // namespace siphon
