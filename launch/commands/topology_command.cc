// siphon topology: a server's devices, links and way to the host.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/commands/command.h"
#include "launch/commands/topology_report.h"
#include "launch/output/text_file.h"
#include "launch/process/exit_codes.h"
#include "launch/topology/probe/probe_server.h"
#include "launch/topology/server_file.h"
#include "launch/topology/topology_file.h"
#include "planner/performance/device_spec.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Less than a chunk of 4 KiB is latency; more is no better a figure.
constexpr Bytes kLeastCopy{128 << 10};
constexpr Bytes kMostCopy{int64_t{1} << 30};

struct TopologyArguments {
  std::string preset;
  std::string file;
  std::string nvidia_smi;
  std::string nccl_xml;
  std::string device;
  bool probe = false;
  bool fresh = false;
  std::string copy_bytes;
  std::string output;
  OutputFormat format = OutputFormat::kText;
};

absl::StatusOr<std::string> List(OutputFormat format) {
  std::vector<std::string> names;
  std::vector<Topology> topologies;
  for (const TopologyPreset& preset : TopologyPresets()) {
    names.emplace_back(preset.name);
    topologies.emplace_back();
    SIPHON_ASSIGN_OR_RETURN(topologies.back(), FindTopologyPreset(preset.name));
  }
  return format == OutputFormat::kJson ? TopologyListJson(names, topologies)
                                       : TopologyListText(names, topologies);
}

// Of --file by what is in it.
absl::StatusOr<DiscoveredTopology> Read(const TopologyArguments& arguments,
                                        const std::string& path) {
  if (&path == &arguments.preset) return FindServerPreset(path);
  SIPHON_ASSIGN_OR_RETURN(const std::string text, ReadTopologyText(path));
  const ServerFormat format = &path == &arguments.nvidia_smi ? ServerFormat::kNvidiaSmi
                              : &path == &arguments.nccl_xml ? ServerFormat::kNcclXml
                                                             : FormatOfServer(text);
  return ParseServer(text, path, format, arguments.device);
}

// A file to plan with has what a plan needs.
absl::Status WriteServer(const DiscoveredTopology& server, const std::string& path) {
  if (server.topology.devices.front().memory > Bytes(0)) return WriteTextFile(path, server.yaml);
  return absl::InvalidArgumentError(
      absl::StrCat("--output: the devices' memory is not told; give --device (",
                   absl::StrJoin(KnownDeviceSpecs(), ", "), ")"));
}

absl::StatusOr<std::string> Probe(const TopologyArguments& arguments) {
  SIPHON_RETURN_IF_ERROR(CheckOutputs({{"--output", arguments.output}}));
  absl::StatusOr<ProbeSources> sources = ProbeSourcesHere();
  // Surroundings that lack what was asked for are input to be changed, as for a job.
  const auto refused = [](const absl::Status& status) {
    return absl::IsFailedPrecondition(status) ? absl::InvalidArgumentError(status.message())
                                              : status;
  };
  if (!sources.ok()) return refused(sources.status());
  sources->is_fresh = arguments.fresh;
  if (!arguments.copy_bytes.empty()) {
    const absl::StatusOr<Bytes> bytes = ParseBytes(arguments.copy_bytes);
    if (!bytes.ok()) return Annotate(bytes.status(), "--copy_bytes");
    if (*bytes < kLeastCopy || *bytes > kMostCopy) {
      return absl::InvalidArgumentError(absl::StrCat("--copy_bytes: is ", FormatBytes(*bytes),
                                                     "; write at least ", FormatBytes(kLeastCopy),
                                                     " and at most ", FormatBytes(kMostCopy)));
    }
    sources->sizes = CalibrationSizes{.bytes = *bytes};
  }
  const absl::StatusOr<ProbedServer> probed = ProbeServer(*sources);
  if (!probed.ok()) return refused(probed.status());
  if (!arguments.output.empty()) {
    SIPHON_RETURN_IF_ERROR(WriteTextFile(arguments.output, probed->yaml));
  }
  constexpr char kSource[] = "this machine";
  return arguments.format == OutputFormat::kJson ? TopologyJson(kSource, probed->discovered)
                                                 : TopologyText(kSource, probed->discovered);
}

absl::StatusOr<std::string> Show(const TopologyArguments& arguments) {
  const std::string* source = nullptr;
  for (const std::string* given :
       {&arguments.preset, &arguments.file, &arguments.nvidia_smi, &arguments.nccl_xml}) {
    if (given->empty()) continue;
    if (source != nullptr) {
      return absl::InvalidArgumentError(
          "one server at a time: give one of --preset, --file, --nvidia_smi, --nccl_xml");
    }
    source = given;
  }
  const bool measures = arguments.fresh || !arguments.copy_bytes.empty();
  if (arguments.probe && (source != nullptr || !arguments.device.empty())) {
    return absl::InvalidArgumentError(
        "--probe measures this machine; leave out --preset, --file, --nvidia_smi, --nccl_xml, "
        "--device");
  }
  if (!arguments.probe && measures) {
    return absl::InvalidArgumentError("--fresh and --copy_bytes belong to --probe");
  }
  if (arguments.probe) return Probe(arguments);
  if (!arguments.device.empty() && (source == nullptr || source == &arguments.preset)) {
    return absl::InvalidArgumentError(
        "--device belongs to --nvidia_smi and --nccl_xml; presets and files say what they have");
  }
  if (source == nullptr && arguments.output.empty()) return List(arguments.format);
  DiscoveredTopology shown;
  if (source != nullptr) {
    SIPHON_ASSIGN_OR_RETURN(shown, Read(arguments, *source));
  }
  if (!arguments.output.empty()) {
    if (shown.yaml.empty()) {
      return absl::InvalidArgumentError(
          "--output belongs to --probe, --nvidia_smi and --nccl_xml; presets and topology files "
          "are files already");
    }
    SIPHON_RETURN_IF_ERROR(WriteServer(shown, arguments.output));
  }
  return arguments.format == OutputFormat::kJson ? TopologyJson(*source, shown)
                                                 : TopologyText(*source, shown);
}

int PrintTopology(const TopologyArguments& arguments) {
  const absl::StatusOr<std::string> text = Show(arguments);
  if (!text.ok()) return ReportError(text.status());
  std::fputs(text->c_str(), stdout);
  return kExitDone;
}

}  // namespace

RunCommand AddTopologyCommand(CLI::App& app) {
  const auto arguments = std::make_shared<TopologyArguments>();
  CLI::App* command =
      app.add_subcommand("topology", "Show a server: links, rates, switches, symmetry");
  command->add_option("--preset", arguments->preset, "A server that is built in")
      ->type_name("NAME");
  command
      ->add_option("--file", arguments->file,
                   "A file like those in configs/topologies, or one of the two below")
      ->type_name("FILE");
  command
      ->add_option(
          "--nvidia_smi", arguments->nvidia_smi,
          "What nvidia-smi topo -m prints, saved; nvidia-smi -L before it names the devices")
      ->type_name("FILE");
  command->add_option("--nccl_xml", arguments->nccl_xml, "What NCCL writes to NCCL_TOPO_DUMP_FILE")
      ->type_name("FILE");
  command
      ->add_option("--device", arguments->device,
                   "Kind of device in an --nvidia_smi or --nccl_xml file (V100, A100-80, ..), for "
                   "rates and memory; default: by what the file tells")
      ->type_name("NAME");
  command->add_flag("--probe", arguments->probe,
                    "Measure this machine's devices; some seconds, kept for the next time");
  command->add_flag("--fresh", arguments->fresh, "With --probe: measure again");
  command
      ->add_option("--copy_bytes", arguments->copy_bytes,
                   "With --probe: size of each timed copy, default 64MiB; measures again, and what "
                   "was measured is not kept")
      ->type_name("SIZE");
  command
      ->add_option(
          "--output", arguments->output,
          "With --probe, --nvidia_smi or --nccl_xml: write a topology file, for --file and "
          "topology.name of a job")
      ->type_name("FILE");
  AddFormat(command, &arguments->format);
  command->footer(
      "Without arguments, lists the presets. A file that is wrong is refused with exit code 2 and "
      "the place.");
  return [arguments] { return PrintTopology(*arguments); };
}

}  // namespace siphon
