#include "launch/commands/simulate_report.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/commands/plan_report.h"
#include "launch/output/figure_text.h"
#include "launch/output/text_table.h"
#include "launch/profile/predict_step.h"
#include "planner/placement_bytes.h"

namespace siphon {
namespace {

double Seconds(Nanos time) { return static_cast<double>(time.value) / 1e9; }

std::string Share(Nanos part, Nanos whole) {
  if (whole.value <= 0) return "-";
  return FormatPercent(Seconds(part) / Seconds(whole));
}

std::string Headline(const PlanText& plan) {
  const int workers = WorkerCount(plan.training);
  const int stages = StageCount(plan.training);
  std::string text =
      absl::StrCat(plan.model.empty() ? "a model" : plan.model, ", ",
                   plan.schedule.empty() ? "a schedule" : plan.schedule, ": ",
                   CountText(workers, "worker"), ", ", CountText(stages, "stage"), ", ",
                   CountText(plan.training.microbatches, "microbatch"), " of ", plan.microbatch);
  if (plan.training.replicas > 1) absl::StrAppend(&text, ", ", plan.training.replicas, " replicas");
  if (!plan.strategy.empty()) absl::StrAppend(&text, ", ", plan.strategy);
  return text;
}

std::string CostsLine(const PlanText& plan) {
  if (plan.costs != kUnitCosts) return absl::StrCat("costs: ", plan.costs);
  return "costs: unit (nothing was measured or calculated, so that times are only of the "
         "schedule's shape)";
}

// A plan without a mapping has worker w on device w.
int DeviceOf(const PlanText& plan, size_t worker) {
  const std::vector<DeviceId>& devices = plan.mapping.device_of_worker;
  return devices.empty() ? static_cast<int>(worker) : devices[worker].value;
}

PageTable MemoryTable(const SimulateReport& report) {
  const SimulatedStep& step = report.step;
  const std::vector<Bytes> capacity = CapacityOf(report.plan);
  const bool on_devices = !report.plan.topology.devices.empty();
  PageTable table{.title = "memory at each worker's peak", .header = {"worker"}};
  if (on_devices) table.header.emplace_back("device");
  table.header.emplace_back("live");
  std::vector<MemoryKind> kinds;
  for (size_t index = 0; index < kMemoryKinds; ++index) {
    const auto kind = static_cast<MemoryKind>(index);
    bool used = false;
    for (const MemoryByKind& peak : step.peak) used = used || peak[kind].value > 0;
    if (!used) continue;
    kinds.push_back(kind);
    table.header.emplace_back(MemoryKindName(kind));
  }
  table.header.emplace_back("peak");
  if (!capacity.empty()) table.header.emplace_back("capacity");
  for (size_t worker = 0; worker < step.peak.size(); ++worker) {
    std::vector<std::string> row = {absl::StrCat(worker)};
    if (on_devices) row.push_back(absl::StrCat(DeviceOf(report.plan, worker)));
    row.push_back(absl::StrCat(step.peak_live_activations[worker]));
    for (const MemoryKind kind : kinds) row.push_back(FormatBytes(step.peak[worker][kind]));
    row.push_back(FormatBytes(Total(step.peak[worker])));
    if (!capacity.empty()) {
      const Bytes limit = capacity[worker % capacity.size()];
      row.push_back(limit.value > 0 ? FormatBytes(limit) : "no limit");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<std::string> PlacementRow(std::string name, const PlacementBytes& bytes) {
  std::vector<std::string> row = {std::move(name)};
  for (const Bytes part : bytes) row.push_back(part.value == 0 ? "-" : FormatBytes(part));
  return row;
}

// Where tensors are while nobody needs them.
PageTable PlacementTable(const PlanText& plan) {
  PageTable table{
      .title = "tensors by choice, activations and older weights as often as they are live",
      .header = {"stage"}};
  if (plan.memory.stages.empty()) return table;
  for (int index = 0; index < kPlacements; ++index) {
    table.header.emplace_back(PlacementName(static_cast<Placement>(index)));
  }
  const std::vector<PlacementBytes> stages = BytesByPlacement(plan);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    table.rows.push_back(PlacementRow(absl::StrCat(stage), stages[stage]));
  }
  table.rows.push_back(PlacementRow("all", Sum(stages)));
  return table;
}

// Peaks of those that compute nothing.
PageTable HolderTable(const SimulatedStep& step) {
  PageTable table{.title = "peaks of what holds swapped tensors", .header = {"where", "peak"}};
  if (step.host_peak.value > 0) table.rows.push_back({"host", FormatBytes(step.host_peak)});
  for (const HolderPeak& peak : step.other_peaks) {
    table.rows.push_back({peak.name, FormatBytes(peak.bytes)});
  }
  return table;
}

// Copies go one after the other through a channel or a copy engine, which has them as intervals,
// and through links, which they share. Each byte counts once in each of both.
enum class LaneSort { kLinks, kChannels };

std::vector<LaneTimeline> LanesOf(const SimulatedStep& step, LaneSort sort) {
  std::vector<LaneTimeline> lanes;
  for (const LaneTimeline& lane : step.lanes) {
    if (lane.intervals.empty() == (sort == LaneSort::kLinks)) lanes.push_back(lane);
  }
  return lanes;
}

PageTable LaneTable(const SimulatedStep& step, LaneSort sort) {
  const bool links = sort == LaneSort::kLinks;
  PageTable table{.title = links ? "links" : "messages and copies, one at a time",
                  .header = {links ? "link" : "channel", "bytes", "busy", "of the step"}};
  for (const LaneTimeline& lane : LanesOf(step, sort)) {
    table.rows.push_back({lane.name, FormatBytes(lane.bytes), FormatNanos(lane.busy),
                          Share(lane.busy, step.step_time)});
  }
  return table;
}

PageTable WaitTable(const SimulatedStep& step) {
  PageTable table{.title = "exposed waits by cause", .header = {"worker"}};
  for (size_t cause = 0; cause < kWaitCauses; ++cause) {
    table.header.emplace_back(WaitCauseName(static_cast<WaitCause>(cause)));
  }
  for (size_t worker = 0; worker < step.exposed_waits.size(); ++worker) {
    std::vector<std::string> row = {absl::StrCat(worker)};
    for (const Nanos wait : step.exposed_waits[worker]) row.push_back(FormatNanos(wait));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<PageTable> Tables(const SimulateReport& report) {
  return {MemoryTable(report),
          PlacementTable(report.plan),
          HolderTable(report.step),
          LaneTable(report.step, LaneSort::kLinks),
          LaneTable(report.step, LaneSort::kChannels),
          WaitTable(report.step)};
}

struct Fact {
  std::string name;
  std::string value;
  std::string meaning;
};

std::vector<Fact> FactsOf(const SimulateReport& report) {
  const SimulatedStep& step = report.step;
  const PlanPrediction& planned = report.plan.predicted;
  std::vector<Fact> facts = {{"step time", FormatNanos(step.step_time), ""}};
  if (planned.step_time.value > 0 && planned.step_time != step.step_time) {
    facts.push_back({"as planned", FormatNanos(planned.step_time),
                     "what the file says: it was edited, or written by another version"});
  }
  if (const std::optional<double> gap = GapOf(step.step_time, planned.lower_bound)) {
    const std::string above = *gap < 0
                                  ? "this step is shorter: the file's facts were edited"
                                  : absl::StrCat("this step is ", FormatPercent(*gap), " above it");
    facts.push_back({"lower bound", FormatNanos(planned.lower_bound),
                     absl::StrCat("of any plan for what the file was made from; ", above)});
  }
  facts.push_back({"bubble_fraction", FormatPercent(step.bubble_fraction),
                   "idle time of all workers, fill and drain included"});
  facts.push_back({"inner_idle_fraction", FormatPercent(step.inner_idle_fraction),
                   "of it between a worker's own first and last action"});
  return facts;
}

std::vector<std::pair<std::string, std::string>> PageFacts(const SimulateReport& report) {
  std::vector<std::pair<std::string, std::string>> facts;
  for (Fact& fact : FactsOf(report)) {
    facts.emplace_back(std::move(fact.name), std::move(fact.value));
  }
  return facts;
}

nlohmann::ordered_json ChoicesJson(const PlanText& plan) {
  nlohmann::ordered_json choices = nlohmann::ordered_json::object();
  const PlacementBytes bytes = Sum(BytesByPlacement(plan));
  for (size_t index = 0; index < bytes.size(); ++index) {
    choices[std::string(PlacementName(static_cast<Placement>(index)))] = bytes[index].value;
  }
  return choices;
}

// What the memory plan of the file adds.
void AddMemoryPlan(const SimulateReport& report, nlohmann::ordered_json& json) {
  const PlanText& plan = report.plan;
  json["strategy"] = plan.strategy;
  json["mapping"] = nlohmann::ordered_json::array();
  for (size_t worker = 0; worker < report.step.peak.size(); ++worker) {
    json["mapping"].push_back(DeviceOf(plan, worker));
  }
  json["choices"] = ChoicesJson(plan);
  json["host_peak_bytes"] = report.step.host_peak.value;
  json["other_peaks"] = nlohmann::ordered_json::array();
  for (const HolderPeak& peak : report.step.other_peaks) {
    json["other_peaks"].push_back({{"name", peak.name}, {"bytes", peak.bytes.value}});
  }
  json["planned_step_seconds"] = Seconds(plan.predicted.step_time);
  json["lower_bound_seconds"] = Seconds(plan.predicted.lower_bound);
  const std::optional<double> gap = GapOf(report.step.step_time, plan.predicted.lower_bound);
  json["gap"] = gap.has_value() ? nlohmann::ordered_json(*gap) : nlohmann::ordered_json();
}

}  // namespace

std::string ReportText(const SimulateReport& report, int columns, TextColors colors) {
  const SimulatedStep& step = report.step;
  TimelinePicture workers{.span = step.step_time};
  for (size_t worker = 0; worker < step.workers.size(); ++worker) {
    workers.rows.push_back({absl::StrCat("worker ", worker), step.workers[worker]});
  }
  std::string text = absl::StrCat(Headline(report.plan), "\n", CostsLine(report.plan), "\n\n",
                                  TimelinePictureText(workers, columns, colors), "\n");
  for (const Fact& fact : FactsOf(report)) {
    absl::StrAppend(&text, absl::StrFormat("%-21s%s", fact.name, fact.value),
                    fact.meaning.empty() ? "" : "  ", fact.meaning, "\n");
  }
  for (const PageTable& table : Tables(report)) {
    if (table.rows.empty()) continue;
    absl::StrAppend(&text, "\n", table.title, "\n", TextTable(table.header, table.rows));
  }
  return text;
}

std::string ReportJson(const SimulateReport& report) {
  using Json = nlohmann::ordered_json;
  const SimulatedStep& step = report.step;
  Json json = {{"step_seconds", Seconds(step.step_time)},
               {"bubble_fraction", step.bubble_fraction},
               {"inner_idle_fraction", step.inner_idle_fraction},
               {"peak_bytes", Json::array()},
               {"peak_live_activations", step.peak_live_activations},
               {"link_bytes", Json::array()},
               {"costs", report.plan.costs},
               {"memory", Json::array()},
               {"exposed_wait_seconds", Json::array()}};
  for (const MemoryByKind& peak : step.peak) {
    json["peak_bytes"].push_back(Total(peak).value);
    Json kinds = Json::object();
    for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
      kinds[std::string(MemoryKindKey(static_cast<MemoryKind>(kind)))] = peak.bytes[kind].value;
    }
    json["memory"].push_back(std::move(kinds));
  }
  for (const LaneTimeline& link : LanesOf(step, LaneSort::kLinks)) {
    json["link_bytes"].push_back(link.bytes.value);
  }
  for (const auto& [key, sort] :
       {std::pair("links", LaneSort::kLinks), std::pair("channels", LaneSort::kChannels)}) {
    json[key] = Json::array();
    for (const LaneTimeline& lane : LanesOf(step, sort)) {
      json[key].push_back(
          {{"name", lane.name}, {"bytes", lane.bytes.value}, {"busy_seconds", Seconds(lane.busy)}});
    }
  }
  for (const auto& causes : step.exposed_waits) {
    Json waits = Json::object();
    for (size_t cause = 0; cause < kWaitCauses; ++cause) {
      std::string name(WaitCauseName(static_cast<WaitCause>(cause)));
      for (char& letter : name) letter = letter == ' ' ? '_' : letter;
      waits[name] = Seconds(causes[cause]);
    }
    json["exposed_wait_seconds"].push_back(std::move(waits));
  }
  AddMemoryPlan(report, json);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

TimelinePage ReportPage(const SimulateReport& report) {
  return {.title = Headline(report.plan),
          .lead = CostsLine(report.plan),
          .facts = PageFacts(report),
          .pictures = {PictureOf(report.step, CapacityOf(report.plan), "predicted step")},
          .tables = Tables(report)};
}

}  // namespace siphon
