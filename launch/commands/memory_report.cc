#include "launch/commands/memory_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "launch/commands/parameter_count.h"
#include "launch/output/figure_text.h"
#include "launch/output/text_table.h"

namespace siphon {
namespace {

using Json = nlohmann::ordered_json;

// Kinds that any stage uses, in their order.
std::vector<MemoryKind> UsedKinds(const MemoryEstimate& estimate) {
  std::vector<MemoryKind> used;
  for (size_t index = 0; index < kMemoryKinds; ++index) {
    const auto kind = static_cast<MemoryKind>(index);
    const auto uses = [kind](const MemoryByKind& worker) { return worker[kind] > Bytes(); };
    if (std::any_of(estimate.workers.begin(), estimate.workers.end(), uses)) used.push_back(kind);
  }
  return used;
}

bool HasChunks(const MemoryEstimate& estimate) {
  return estimate.stages.size() > estimate.workers.size();
}

std::string Title(const MemoryReport& report) {
  const ModelOptions& options = report.model.options;
  return absl::StrFormat(
      "%s, %s, %s; %s on %s, %s of %d, %s, %s\n"
      "%s\n\n",
      options.kind, CountText(static_cast<int64_t>(report.model.layers.size()), "layer"),
      ParameterCountText(ParameterCount(report.model)), report.plan.schedule_name,
      CountText(WorkerCount(report.plan.training), "worker"),
      CountText(report.plan.training.microbatches, "microbatch"), report.plan.microbatch,
      report.job.train.precision, report.job.train.optimizer,
      report.accounting == Accounting::kRuntime
          ? "Runtime accounting: what each worker holds at its fullest moment of a step."
          : "Published accounting: parameters and formula 2 of arXiv:2205.05198, as papers count.");
}

void AppendKinds(const MemoryByKind& memory, const std::vector<MemoryKind>& kinds,
                 std::vector<std::string>& row) {
  for (const MemoryKind kind : kinds) {
    row.push_back(memory[kind] == Bytes() ? "-" : FormatBytes(memory[kind]));
  }
  row.push_back(FormatBytes(Total(memory)));
}

void AppendHeadroom(const MemoryReport& report, WorkerId worker, std::vector<std::string>& row) {
  const std::optional<Bytes> capacity = WorkerCapacity(report.job, worker);
  if (!capacity.has_value()) return;
  const Bytes needed = Total(report.estimate.workers[worker.value]);
  row.push_back(needed <= *capacity ? FormatBytes(*capacity - needed)
                                    : absl::StrCat("-", FormatBytes(needed - *capacity)));
}

std::vector<std::string> Header(const MemoryReport& report, const std::string& first,
                                const std::vector<MemoryKind>& kinds) {
  std::vector<std::string> header{first};
  for (const MemoryKind kind : kinds) header.emplace_back(MemoryKindName(kind));
  header.emplace_back("total");
  if (!report.job.memory.capacity.empty()) header.emplace_back("free");
  return header;
}

std::string StageTable(const MemoryReport& report) {
  const std::vector<MemoryKind> kinds = UsedKinds(report.estimate);
  const bool chunks = HasChunks(report.estimate);
  std::vector<std::vector<std::string>> rows;
  for (const StageMemory& stage : report.estimate.stages) {
    const StageRange& range = report.plan.partition.stages[stage.stage.value];
    std::string name = absl::StrCat(stage.stage.value, chunks ? " on worker " : "");
    if (chunks) absl::StrAppend(&name, stage.worker.value);
    rows.push_back(
        {name, absl::StrCat(range.end - range.begin), absl::StrCat(stage.live_microbatches)});
    AppendKinds(stage.memory, kinds, rows.back());
    if (!chunks) AppendHeadroom(report, stage.worker, rows.back());
  }
  std::vector<std::string> header = Header(report, "stage", kinds);
  header.insert(header.begin() + 1, {"layers", "live"});
  std::string text = TextTable(header, rows);
  if (!chunks) return text;
  rows.clear();
  for (size_t worker = 0; worker < report.estimate.workers.size(); ++worker) {
    rows.push_back({absl::StrCat(worker)});
    AppendKinds(report.estimate.workers[worker], kinds, rows.back());
    AppendHeadroom(report, WorkerId(static_cast<int>(worker)), rows.back());
  }
  return absl::StrCat(text, "\n", TextTable(Header(report, "worker", kinds), rows));
}

std::string Sums(const MemoryReport& report) {
  const Bytes largest = LargestWorker(report.estimate);
  const Bytes smallest = SmallestWorker(report.estimate);
  return absl::StrFormat("\n%s in all; the fullest worker holds %s, the emptiest %s (%.1f times)\n",
                         FormatBytes(TotalOf(report.estimate)), FormatBytes(largest),
                         FormatBytes(smallest),
                         static_cast<double>(largest.value) /
                             static_cast<double>(std::max<int64_t>(smallest.value, 1)));
}

// Those that keep everything.
std::string ChangesText(const MemoryReport& report) {
  std::string text;
  for (const FittingChange& change : report.changes) {
    const bool first = &change == report.changes.data();
    absl::StrAppend(&text, first ? "to keep everything: --set " : "or:  --set ", change.setting,
                    "  (", change.meaning, "; ", FormatBytes(change.largest),
                    " on the fullest worker)\n");
  }
  return text;
}

std::string Verdict(const MemoryReport& report) {
  if (report.job.memory.capacity.empty()) return "";
  const std::optional<Misfit> misfit = FindMisfit(report.job, report.estimate);
  if (!misfit.has_value()) return "fits: every worker stays within memory.capacity\n";
  const std::string needs =
      absl::StrCat("worker ", misfit->worker.value, " needs ", FormatBytes(misfit->missing()),
                   " more than its ", FormatBytes(misfit->capacity));
  const std::string& strategy = report.fitting_strategy;
  if (strategy.empty()) {
    return absl::StrCat("does not fit: ", needs, "\n",
                        report.tried.fixes.empty() ? ChangesText(report) : FixesText(report.tried));
  }
  return absl::StrCat("with everything kept ", needs, "; it fits with memory.strategy ", strategy,
                      ", siphon plan shows how\n", ChangesText(report));
}

std::string Sources(const MemoryReport& report) {
  std::vector<std::string> names;
  for (const StageMemory& stage : report.estimate.stages) {
    for (const LayerUse& layer : stage.layers) {
      const std::string name(MemorySourceName(layer.source));
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::string text = absl::StrCat("activations from: ", absl::StrJoin(names, ", "), "\n");
  const std::vector<std::string> unknown = UnknownLayers(report.estimate);
  if (unknown.empty()) return text;
  constexpr size_t kMostNames = 4;
  const std::vector<std::string> some(
      unknown.begin(),
      unknown.begin() + static_cast<std::ptrdiff_t>(std::min(kMostNames, unknown.size())));
  return absl::StrCat(text, "not counted: activations of ", unknown.size(), " layers (",
                      absl::StrJoin(some, ", "), unknown.size() > kMostNames ? ", ..." : "",
                      "), of which nothing is known; siphon profile measures them\n");
}

// Layers that are alike and stand side by side are shown once.
std::string LayerText(const StageMemory& stage) {
  std::string text = absl::StrCat("\nstage ", stage.stage.value, "\n");
  for (size_t begin = 0; begin < stage.layers.size();) {
    const LayerUse& layer = stage.layers[begin];
    size_t end = begin + 1;
    while (end < stage.layers.size() && stage.layers[end].saved == layer.saved &&
           stage.layers[end].parameters == layer.parameters) {
      ++end;
    }
    Bytes saved;
    for (const SavedTensor& tensor : layer.saved) saved += tensor.bytes;
    absl::StrAppend(&text, "  ", layer.name);
    if (end - begin > 1) {
      absl::StrAppend(&text, " .. ", stage.layers[end - 1].name, " (", end - begin,
                      " alike, each)");
    }
    absl::StrAppend(&text, ": ", FormatBytes(layer.parameters), " of parameters, saves ",
                    FormatBytes(saved), " of a microbatch\n");
    std::vector<std::vector<std::string>> rows;
    for (const SavedTensor& tensor : layer.saved) {
      rows.push_back({absl::StrCat("    ", tensor.name), FormatBytes(tensor.bytes)});
    }
    if (!rows.empty()) absl::StrAppend(&text, TextTable({"    saved", "bytes"}, rows));
    begin = end;
  }
  return text;
}

Json KindsJson(const MemoryByKind& memory) {
  Json json;
  for (size_t index = 0; index < kMemoryKinds; ++index) {
    const auto kind = static_cast<MemoryKind>(index);
    json[std::string(MemoryKindKey(kind))] = memory[kind].value;
  }
  json["total"] = Total(memory).value;
  return json;
}

Json LayerJson(const LayerUse& layer) {
  Json json{{"name", layer.name},
            {"parameters", layer.parameters.value},
            {"source", MemorySourceName(layer.source)},
            {"saved", Json::array()}};
  for (const SavedTensor& tensor : layer.saved) {
    json["saved"].push_back({{"name", tensor.name}, {"bytes", tensor.bytes.value}});
  }
  return json;
}

Json StageJson(const MemoryReport& report, const StageMemory& stage, MemoryDetail detail) {
  Json json = KindsJson(stage.memory);
  json["stage"] = stage.stage.value;
  json["worker"] = stage.worker.value;
  json["first_layer"] = report.plan.partition.stages[stage.stage.value].begin;
  json["layer_count"] = stage.layers.size();
  json["live_microbatches"] = stage.live_microbatches;
  json["versions"] = stage.weight_versions;
  if (detail == MemoryDetail::kLayers) {
    for (const LayerUse& layer : stage.layers) json["layers"].push_back(LayerJson(layer));
  }
  return json;
}

Json ChangesJson(const MemoryReport& report) {
  Json changes = Json::array();
  for (const PlanFix& fix : report.tried.fixes) {
    changes.push_back({{"set", absl::StrJoin(fix.settings, " --set ")},
                       {"meaning", fix.meaning},
                       {"max_bytes", fix.largest_peak.value}});
    if (fix.devices > Bytes(0)) changes.back()["device_bytes"] = fix.devices.value;
  }
  if (!changes.empty()) return changes;
  for (const FittingChange& change : report.changes) {
    changes.push_back({{"set", change.setting},
                       {"meaning", change.meaning},
                       {"max_bytes", change.largest.value}});
  }
  return changes;
}

}  // namespace

std::string MemoryText(const MemoryReport& report, MemoryDetail detail) {
  std::string text = absl::StrCat(Title(report), StageTable(report), Sums(report), Verdict(report),
                                  Sources(report));
  if (detail == MemoryDetail::kStages) return text;
  for (const StageMemory& stage : report.estimate.stages) absl::StrAppend(&text, LayerText(stage));
  return text;
}

std::string MemoryJson(const MemoryReport& report, MemoryDetail detail) {
  Json json;
  json["accounting"] = report.accounting == Accounting::kRuntime ? "runtime" : "published";
  json["stages"] = Json::array();
  for (const StageMemory& stage : report.estimate.stages) {
    json["stages"].push_back(StageJson(report, stage, detail));
  }
  for (size_t worker = 0; worker < report.estimate.workers.size(); ++worker) {
    Json entry = KindsJson(report.estimate.workers[worker]);
    const auto capacity = WorkerCapacity(report.job, WorkerId(static_cast<int>(worker)));
    if (capacity.has_value()) entry["capacity"] = capacity->value;
    json["workers"].push_back(std::move(entry));
  }
  json["total_bytes"] = TotalOf(report.estimate).value;
  json["max_bytes"] = LargestWorker(report.estimate).value;
  json["min_bytes"] = SmallestWorker(report.estimate).value;
  json["unknown_layers"] = UnknownLayers(report.estimate);
  json["fits"] = !FindMisfit(report.job, report.estimate).has_value();
  if (!report.fitting_strategy.empty()) json["fitting_strategy"] = report.fitting_strategy;
  json["changes"] = ChangesJson(report);
  return json.dump(2) + "\n";
}

}  // namespace siphon
