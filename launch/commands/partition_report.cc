#include "launch/commands/partition_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/output/text_table.h"

namespace siphon {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBarLetters = 10;

// One unit and two decimals for every stage, so that they compare at a glance.
std::string Milliseconds(double seconds) { return absl::StrFormat("%.2f ms", seconds * 1e3); }

std::string Times(double numerator, double denominator) {
  return denominator > 0 ? absl::StrFormat("%.2fx", numerator / denominator) : "-";
}

std::string Counted(size_t count, absl::string_view one) {
  return absl::StrCat(count, " ", one, count == 1 ? "" : "s");
}

// "######....": the stage's time against the slowest stage's.
std::string Bar(double part, double whole) {
  const int full =
      whole > 0 ? static_cast<int>(std::lround(part / whole * kBarLetters)) : kBarLetters;
  return absl::StrCat(std::string(full, '#'), std::string(kBarLetters - full, '.'));
}

std::string NodesOf(const ProfileGraph& graph, const GraphStage& stage) {
  const std::string& first = graph.nodes[stage.nodes.front()].name;
  if (stage.nodes.size() == 1) return first;
  return absl::StrCat(first, " .. ", graph.nodes[stage.nodes.back()].name, " (", stage.nodes.size(),
                      ")");
}

std::string Title(const PartitionReport& report) {
  const GraphPartitionRequest& request = report.request;
  const GraphPartition& partition = report.partition;
  std::string text = absl::StrCat(
      report.profile, ": ", Counted(report.graph.nodes.size(), "node"), " for ",
      Counted(request.workers, "worker"), " at ", FormatRate(request.bandwidth), ", method ",
      report.method, request.replication == Replication::kNone ? ", no replicas" : "", "\n",
      Milliseconds(partition.seconds_per_minibatch),
      " a minibatch: ", Times(partition.one_worker_seconds, partition.seconds_per_minibatch),
      " one worker (", Milliseconds(partition.one_worker_seconds), ")");
  if (request.workers > 1) {
    absl::StrAppend(&text, ", ",
                    Times(partition.data_parallel_seconds, partition.seconds_per_minibatch),
                    " data parallelism (", Milliseconds(partition.data_parallel_seconds), ")");
  }
  return text + "\n\n";
}

std::string Table(const PartitionReport& report) {
  const std::vector<GraphStage>& stages = report.partition.stages;
  size_t longest = 0;
  for (const GraphStage& stage : stages) {
    longest = std::max(longest, NodesOf(report.graph, stage).size());
  }
  std::vector<std::vector<std::string>> rows;
  for (size_t index = 0; index < stages.size(); ++index) {
    const GraphStage& stage = stages[index];
    std::string nodes = NodesOf(report.graph, stage);
    nodes.resize(longest, ' ');  // flush left
    rows.push_back({absl::StrCat(index), absl::StrCat(stage.replicas), Milliseconds(stage.seconds),
                    Bar(stage.seconds, report.partition.seconds_per_minibatch),
                    Milliseconds(static_cast<double>(stage.compute.value) / 1e9),
                    FormatBytes(stage.parameters),
                    index + 1 == stages.size() ? "-" : FormatBytes(stage.boundary),
                    FormatBytes(Bytes(std::llround(stage.memory))), nodes});
  }
  std::string nodes_header = "nodes";
  nodes_header.resize(std::max(longest, nodes_header.size()), ' ');
  return TextTable({"stage", "workers", "time", "of slowest", "compute", "parameters", "sends on",
                    "memory", nodes_header},
                   rows);
}

std::string Notes(const PartitionReport& report) {
  const GraphPartitionRequest& request = report.request;
  const GraphPartition& partition = report.partition;
  size_t slowest = 0;
  for (size_t stage = 1; stage < partition.stages.size(); ++stage) {
    if (partition.stages[stage].seconds > partition.stages[slowest].seconds) slowest = stage;
  }
  std::string text =
      absl::StrCat("\nStage ", slowest, " is the slowest, by its ",
                   partition.stages[slowest].limit == StageLimit::kTransfer ? "transfers"
                   : partition.stages[slowest].replicas > 1 ? "compute and sum of gradients"
                                                            : "compute",
                   ".");
  if (partition.workers < request.workers) {
    absl::StrAppend(&text, " ", Counted(request.workers - partition.workers, "worker"),
                    " would not help and stay idle.");
  }
  if (!request.compression_ratio.has_value() && partition.stages.size() > 1) {
    absl::StrAppend(&text,
                    "\nTransfers between stages count nothing here; "
                    "--activation_compression_ratio 1 charges them in full.");
  }
  absl::StrAppend(
      &text, "\nMemory: on each worker of the stage; parameters",
      request.weight_versions == WeightVersions::kInFlight ? " once a minibatch in flight" : "",
      ", gradients and optimizer state, stashed activations.");
  if (!partition.left_out.empty()) {
    absl::StrAppend(&text, "\nThere may be better cuts: ", partition.left_out, ".");
  }
  absl::StrAppend(&text, "\n", Counted(partition.cuts, "cut"), " compared in ",
                  Milliseconds(report.planning_seconds), ".\n");
  return text;
}

}  // namespace

std::string PartitionText(const PartitionReport& report) {
  return absl::StrCat(Title(report), Table(report), Notes(report));
}

std::string PartitionJson(const PartitionReport& report) {
  const GraphPartition& partition = report.partition;
  Json json;
  json["profile"] = report.profile;
  json["method"] = report.method;
  json["workers"] = report.request.workers;
  json["workers_used"] = partition.workers;
  json["bandwidth_bytes_per_second"] = report.request.bandwidth.value;
  json["activation_compression_ratio"] = report.request.compression_ratio.has_value()
                                             ? Json(*report.request.compression_ratio)
                                             : Json(nullptr);
  json["seconds_per_minibatch"] = partition.seconds_per_minibatch;
  json["one_worker_seconds"] = partition.one_worker_seconds;
  json["data_parallel_seconds"] = partition.data_parallel_seconds;
  json["stages"] = Json::array();
  for (const GraphStage& stage : partition.stages) {
    Json& entry = json["stages"].emplace_back();
    entry["nodes"] = Json::array();
    for (const int node : stage.nodes) entry["nodes"].push_back(report.graph.nodes[node].name);
    entry["replicas"] = stage.replicas;
    entry["compute_seconds"] = static_cast<double>(stage.compute.value) / 1e9;
    entry["parameter_bytes"] = stage.parameters.value;
    entry["boundary_bytes"] = stage.boundary.value;
    entry["memory_bytes"] = std::llround(stage.memory);
    entry["seconds_per_minibatch"] = stage.seconds;
    entry["limit"] = stage.limit == StageLimit::kTransfer ? "transfer" : "compute";
  }
  json["cuts_compared"] = partition.cuts;
  json["cuts_left_out"] = partition.left_out;
  json["planning_seconds"] = report.planning_seconds;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace siphon
