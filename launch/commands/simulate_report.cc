#include "launch/commands/simulate_report.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/output/text_table.h"
#include "launch/profile/predict_step.h"

namespace siphon {
namespace {

double Seconds(Nanos time) { return static_cast<double>(time.value) / 1e9; }

std::string Percent(double fraction) { return absl::StrFormat("%.1f %%", 100 * fraction); }

std::string Share(Nanos part, Nanos whole) {
  if (whole.value <= 0) return "-";
  return Percent(Seconds(part) / Seconds(whole));
}

std::string Headline(const PlanText& plan) {
  const int workers = WorkerCount(plan.training);
  const int stages = StageCount(plan.training);
  std::string text = absl::StrCat(plan.model.empty() ? "a model" : plan.model, ", ",
                                  plan.schedule.empty() ? "a schedule" : plan.schedule, ": ",
                                  workers, workers == 1 ? " worker, " : " workers, ", stages,
                                  stages == 1 ? " stage, " : " stages, ",
                                  plan.training.microbatches, " microbatches of ", plan.microbatch);
  if (plan.training.replicas > 1) absl::StrAppend(&text, ", ", plan.training.replicas, " replicas");
  return text;
}

std::string CostsLine(const PlanText& plan) {
  if (plan.costs != kUnitCosts) return absl::StrCat("costs: ", plan.costs);
  return "costs: unit (nothing was measured or calculated, so that times are only of the "
         "schedule's shape)";
}

PageTable MemoryTable(const SimulateReport& report) {
  const SimulatedStep& step = report.step;
  const std::vector<Bytes> capacity = CapacityOf(report.plan);
  PageTable table{.title = "memory at each worker's peak", .header = {"worker", "live"}};
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
    std::vector<std::string> row = {absl::StrCat(worker),
                                    absl::StrCat(step.peak_live_activations[worker])};
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
  return {MemoryTable(report), LaneTable(report.step, LaneSort::kLinks),
          LaneTable(report.step, LaneSort::kChannels), WaitTable(report.step)};
}

std::vector<std::pair<std::string, std::string>> Facts(const SimulatedStep& step) {
  return {{"step time", FormatNanos(step.step_time)},
          {"bubble_fraction", Percent(step.bubble_fraction)},
          {"inner_idle_fraction", Percent(step.inner_idle_fraction)}};
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
  absl::StrAppend(&text, "step time            ", FormatNanos(step.step_time), "\n");
  absl::StrAppend(&text, "bubble_fraction      ", Percent(step.bubble_fraction),
                  "  idle time of all workers, fill and drain included\n");
  absl::StrAppend(&text, "inner_idle_fraction  ", Percent(step.inner_idle_fraction),
                  "  of it between a worker's own first and last action\n");
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
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

TimelinePage ReportPage(const SimulateReport& report) {
  return {.title = Headline(report.plan),
          .lead = CostsLine(report.plan),
          .facts = Facts(report.step),
          .pictures = {PictureOf(report.step, CapacityOf(report.plan), "predicted step")},
          .tables = Tables(report)};
}

}  // namespace siphon
