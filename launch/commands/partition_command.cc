// siphon partition: where a measured model is best cut into pipeline stages.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/commands/command.h"
#include "launch/commands/partition_report.h"
#include "launch/config/closest_name.h"
#include "launch/process/exit_codes.h"
#include "launch/profile/pipedream_graph.h"
#include "planner/status.h"

namespace siphon {
namespace {

struct PartitionArguments {
  std::string profile;
  int workers = 0;
  std::string method = "exact";
  std::string bandwidth = "1GB/s";
  GraphPartitionRequest request;
  double ratio = 0;
  CLI::Option* ratio_flag = nullptr;
  OutputFormat format = OutputFormat::kText;
};

absl::Status CheckArguments(const PartitionArguments& arguments) {
  if (arguments.profile.empty()) {
    return absl::InvalidArgumentError(
        "partition needs a profile: siphon partition --profile FILE --workers N; siphon profile "
        "measures one");
  }
  if (arguments.workers < 1 || arguments.workers > kMostPartitionWorkers) {
    return absl::InvalidArgumentError(
        arguments.workers == 0
            ? absl::StrCat("partition needs --workers N, from 1 to ", kMostPartitionWorkers)
            : absl::StrCat("--workers: is ", arguments.workers, "; there must be 1 to ",
                           kMostPartitionWorkers));
  }
  std::vector<std::string> names;
  for (const GraphMethodInfo& method : KnownGraphMethods()) names.push_back(method.name);
  if (std::find(names.begin(), names.end(), arguments.method) != names.end()) {
    return absl::OkStatus();
  }
  const std::string closest = ClosestName(arguments.method, names);
  return absl::NotFoundError(
      absl::StrCat("--method: unknown method ", QuoteForMessage(arguments.method), "; ",
                   closest.empty() ? absl::StrCat("known: ", absl::StrJoin(names, ", "))
                                   : absl::StrCat("did you mean '", closest, "'?")));
}

absl::StatusOr<PartitionReport> Study(const PartitionArguments& arguments) {
  SIPHON_RETURN_IF_ERROR(CheckArguments(arguments));
  PartitionReport report{
      .profile = arguments.profile, .method = arguments.method, .request = arguments.request};
  report.request.workers = arguments.workers;
  const auto bandwidth = ParseRate(arguments.bandwidth);
  if (!bandwidth.ok()) return Annotate(bandwidth.status(), "--bandwidth");
  report.request.bandwidth = *bandwidth;
  if (!arguments.ratio_flag->empty()) report.request.compression_ratio = arguments.ratio;
  SIPHON_ASSIGN_OR_RETURN(report.graph, LoadProfileGraph(arguments.profile));
  const auto begin = std::chrono::steady_clock::now();
  SIPHON_ASSIGN_OR_RETURN(report.partition,
                          PartitionGraph(report.graph, report.request, report.method));
  report.planning_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

int Partition(const PartitionArguments& arguments) {
  const auto report = Study(arguments);
  if (!report.ok()) return ReportError(report.status());
  const bool json = arguments.format == OutputFormat::kJson;
  std::fputs((json ? PartitionJson(*report) : PartitionText(*report)).c_str(), stdout);
  return kExitDone;
}

std::string MethodsHelp() {
  std::string text = "Methods:\n";
  for (const GraphMethodInfo& method : KnownGraphMethods()) {
    absl::StrAppend(&text, "  ", method.name, ": ", method.help, "\n");
  }
  absl::StrAppend(
      &text,
      "Times are counted as PipeDream's optimizer counts them: for a stage of m workers, compute "
      "plus 4 (m - 1) / m times\nits parameters over the link, by m; and twice the bytes that "
      "cross "
      "a cut, over the link, by m. The slowest stage counts.");
  return text;
}

}  // namespace

RunCommand AddPartitionCommand(CLI::App& app) {
  const auto arguments = std::make_shared<PartitionArguments>();
  CLI::App* command =
      app.add_subcommand("partition", "Cut a measured model into pipeline stages with replicas");
  command
      ->add_option("profile,--profile", arguments->profile,
                   "Of siphon profile (YAML), or PipeDream's graph text")
      ->type_name("FILE");
  command->add_option("--workers", arguments->workers, "Workers to spread the model over")
      ->type_name("N");
  command->add_option("--method", arguments->method, "How to cut, see below")
      ->capture_default_str()
      ->type_name("NAME");
  command->add_option("--bandwidth", arguments->bandwidth, "Between any two workers, each way")
      ->capture_default_str()
      ->type_name("RATE");
  command->add_flag_callback(
      "--straight", [arguments] { arguments->request.replication = Replication::kNone; },
      "One worker a stage, no replicas");
  arguments->ratio_flag =
      command
          ->add_option("--activation_compression_ratio", arguments->ratio,
                       "Charge transfers between stages, their bytes divided by R; without it "
                       "they are free")
          ->type_name("R");
  command
      ->add_option_function<std::string>(
          "--weight_versions",
          [arguments](const std::string& name) {
            arguments->request.weight_versions =
                name == "one" ? WeightVersions::kOne : WeightVersions::kInFlight;
          },
          "Whose memory counts: in_flight (PipeDream: weights once a minibatch in flight) or one "
          "(1F1B with a flush); default in_flight")
      ->check(CLI::IsMember({"in_flight", "one"}).description(""))
      ->type_name("in_flight|one");
  AddFormat(command, &arguments->format);
  command->footer(MethodsHelp());
  return [arguments] { return Partition(*arguments); };
}

}  // namespace siphon
