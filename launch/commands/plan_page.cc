#include "launch/commands/plan_page.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "launch/commands/plan_explain.h"
#include "launch/commands/plan_limits.h"
#include "launch/commands/plan_tables.h"
#include "launch/output/figure_text.h"
#include "planner/placement_bytes.h"

namespace siphon {
namespace {

// The worker on each device; none: it has no worker.
std::vector<std::optional<int>> WorkerOfDevice(const StudiedPlan& studied) {
  const auto workers = studied.kept.peak.size();
  const auto devices =
      std::max(static_cast<size_t>(DeviceCount(studied.problem.topology)), workers);
  std::vector<std::optional<int>> worker_of(devices);
  const std::vector<DeviceId>& mapped = studied.plan.mapping.device_of_worker;
  for (size_t worker = 0; worker < workers; ++worker) {
    const size_t device = mapped.empty() ? worker : static_cast<size_t>(mapped[worker].value);
    worker_of[device] = static_cast<int>(worker);
  }
  return worker_of;
}

void AddHeld(Bytes held, Bytes capacity, LinkGraphNode& node) {
  node.lines.push_back(held == Bytes(0) ? "holds nothing"
                                        : absl::StrCat("holds ", FormatBytes(held)));
  if (capacity == Bytes(0)) return;
  node.lines.push_back(absl::StrCat("of ", FormatBytes(capacity)));
  node.filled = static_cast<double>(held.value) / static_cast<double>(capacity.value);
}

// What it holds for others, of its memory.
LinkGraphNode IdleNode(const StudiedPlan& studied, size_t device, LinkGraphNode node) {
  node.lines = {"no worker"};
  AddHeld(HeldBy(studied, node.name), studied.problem.topology.devices[device].memory, node);
  node.title = absl::StrCat(node.name, ": lends only, ", absl::StrJoin(node.lines, ", "));
  return node;
}

LinkGraphNode NodeOf(const StudiedPlan& studied, size_t device, const std::optional<int>& worker) {
  LinkGraphNode node{.name = absl::StrCat("device ", device)};
  if (!worker.has_value()) return IdleNode(studied, device, std::move(node));
  const auto index = static_cast<size_t>(*worker);
  const int of = *worker % WorkerCount(studied.plan.training);
  const std::string stages =
      absl::StrJoin(StagesOf(studied.plan.training, WorkerId(of)), ", ",
                    [](std::string* text, StageId stage) { absl::StrAppend(text, stage.value); });
  const Bytes peak = PeakOf(studied.shown(), index);
  const Bytes capacity = CapacityOf(studied, index);
  node.lines = {absl::StrCat("worker ", *worker), absl::StrCat("stage ", stages),
                capacity == Bytes(0)
                    ? FormatBytes(peak)
                    : absl::StrCat(FormatBytes(peak), " of ", FormatBytes(capacity))};
  if (capacity > Bytes(0)) {
    node.filled = static_cast<double>(peak.value) / static_cast<double>(capacity.value);
  }
  node.title = absl::StrCat(node.name, ": ", absl::StrJoin(node.lines, ", "), ", ",
                            FormatBytes(PeakOf(studied.kept, index)), " with everything kept");
  return node;
}

std::string RateText(const TopologyLink& link) {
  return link.rate == BytesPerSecond(0) ? "rate not known" : FormatRate(link.rate);
}

void AddDeviceLinks(const StudiedPlan& studied, LinkGraph& graph) {
  std::map<std::pair<int, int>, Bytes> parked;
  for (const ParkedBytes& bytes : ParkedBytesOf(studied.plan)) {
    parked[{bytes.owner.value, bytes.lender.value}] += bytes.bytes;
  }
  for (const TopologyLink& link : studied.problem.topology.links) {
    GraphLink& drawn =
        graph.links.emplace_back(GraphLink{.from = link.from.value, .to = link.to.value});
    drawn.title = absl::StrCat("device ", link.from.value, " to device ", link.to.value, ", ",
                               RateText(link));
    const auto found = parked.find({link.from.value, link.to.value});
    if (found == parked.end()) continue;
    drawn.label = FormatBytes(found->second);
    absl::StrAppend(&drawn.title, ": ", drawn.label, " parked");
  }
}

// [device]: what its worker has away with the host or a drive, as `placement` says.
std::vector<Bytes> SentBytes(const StudiedPlan& studied, Placement placement) {
  const std::vector<PlacementBytes> stages = BytesByPlacement(studied.plan);
  std::vector<Bytes> sent;
  for (const std::optional<int>& worker : WorkerOfDevice(studied)) {
    Bytes& bytes = sent.emplace_back();
    if (!worker.has_value()) continue;
    const int of = *worker % WorkerCount(studied.plan.training);
    for (const StageId stage : StagesOf(studied.plan.training, WorkerId(of))) {
      bytes += stages[stage.value][static_cast<size_t>(placement)];
    }
  }
  return sent;
}

void AddSentBytes(size_t device, int to, Bytes bytes, absl::string_view where, LinkGraph& graph) {
  graph.links.push_back(
      {.from = static_cast<int>(device),
       .to = to,
       .label = FormatBytes(bytes),
       .title = absl::StrCat("device ", device, " to ", where, ": ", FormatBytes(bytes))});
}

void AddHost(const StudiedPlan& studied, LinkGraph& graph) {
  graph.hub = "host";
  const Bytes peak = studied.shown().host_peak;
  if (peak > Bytes(0)) absl::StrAppend(&graph.hub, ", ", FormatBytes(peak));
  const std::vector<Bytes> sent = SentBytes(studied, Placement::kHostSwap);
  for (size_t device = 0; device < sent.size(); ++device) {
    if (sent[device] > Bytes(0)) AddSentBytes(device, kGraphHub, sent[device], "the host", graph);
  }
}

// Those that hold anything, each a node beside those of the devices.
void AddDrives(const StudiedPlan& studied, LinkGraph& graph) {
  const Topology& topology = studied.problem.topology;
  const std::vector<Bytes> sent = SentBytes(studied, Placement::kNvmeSwap);
  for (int drive = 0; drive < static_cast<int>(topology.drives.size()); ++drive) {
    LinkGraphNode node{.name = absl::StrCat("drive ", drive)};
    const Bytes held = HeldBy(studied, node.name);
    if (held == Bytes(0)) continue;
    AddHeld(held, topology.drives[drive].capacity, node);
    node.title = absl::StrCat(node.name, ": ", absl::StrJoin(node.lines, " "), " at once");
    const int to = static_cast<int>(graph.nodes.size());
    for (size_t device = 0; device < sent.size(); ++device) {
      if (sent[device] == Bytes(0)) continue;
      if (DriveOf(topology, DeviceId(static_cast<int>(device))) != drive) continue;
      AddSentBytes(device, to, sent[device], node.name, graph);
    }
    graph.nodes.push_back(std::move(node));
  }
}

std::vector<std::pair<std::string, std::string>> FactsOf(const StudiedPlan& studied) {
  const bool fits = studied.step.has_value();
  std::vector<std::pair<std::string, std::string>> facts = {{"fits", fits ? "yes" : "no"},
                                                            {"strategy", studied.strategy}};
  if (fits) facts.emplace_back("step time", FormatNanos(studied.step->step_time));
  facts.emplace_back("with everything kept", FormatNanos(studied.kept.step_time));
  if (!studied.bound.cannot_fit.has_value()) {
    facts.emplace_back("lower bound", FormatNanos(studied.bound.step_time));
  }
  if (const auto gap = GapOf(studied)) facts.emplace_back("gap", FormatPercent(*gap));
  if (const auto tokens = TokensPerSecond(studied)) {
    facts.emplace_back("tokens/s", FigureText(*tokens));
  }
  if (fits) facts.emplace_back("bubble", FormatPercent(studied.step->bubble_fraction));
  return facts;
}

std::string LeadOf(const StudiedPlan& studied) {
  if (!studied.step.has_value()) return absl::StrCat("does not fit: ", studied.misfit);
  return absl::StrCat("costs ", studied.plan.costs, "; limited by ",
                      DiagnosisText(DiagnosePlan(studied), *studied.step));
}

std::vector<TimelinePicture> PicturesOf(const StudiedPlan& studied) {
  const std::vector<Bytes>& capacity = studied.problem.capacity;
  std::vector<TimelinePicture> pictures;
  if (studied.step.has_value()) {
    pictures.push_back(PictureOf(*studied.step, capacity, "planned step"));
    if (studied.step->memory == studied.kept.memory) return pictures;
  }
  pictures.push_back(PictureOf(studied.kept, capacity, "with everything kept"));
  return pictures;
}

PageTable FixTable(const std::vector<PlanFix>& fixes) {
  PageTable table{.title = "smallest changes that fit",
                  .header = {"change", "which is", "step time", "fullest worker"}};
  for (const PlanFix& fix : fixes) {
    table.rows.push_back({SettingsText(fix.settings), fix.meaning, FormatNanos(fix.step_time),
                          FormatBytes(fix.largest_peak)});
  }
  return table;
}

}  // namespace

LinkGraph LinkGraphOf(const StudiedPlan& studied) {
  LinkGraph graph{.title = "links, and what is parked over them"};
  const std::vector<std::optional<int>> worker_of = WorkerOfDevice(studied);
  for (size_t device = 0; device < worker_of.size(); ++device) {
    graph.nodes.push_back(NodeOf(studied, device, worker_of[device]));
  }
  AddDeviceLinks(studied, graph);
  AddHost(studied, graph);
  AddDrives(studied, graph);
  return graph;
}

TimelinePage PlanPage(const PlanReport& report) {
  const StudiedPlan& studied = report.plan;
  TimelinePage page{.title = absl::StrCat("plan: ", studied.plan.model, ", ", studied.plan.schedule,
                                          ", ", studied.strategy),
                    .lead = LeadOf(studied),
                    .facts = FactsOf(studied),
                    .drawings = {LinkGraphSvg(LinkGraphOf(studied))},
                    .pictures = PicturesOf(studied),
                    .tables = {FixTable(report.fixes), WorkerTable(studied), ParkingTable(studied),
                               WhatIfTable(report), ComparisonTable(report.comparison)}};
  page.tables[1].title = "workers";
  page.tables[3].title = "what if";
  for (PageTable& table : ExplainTables(studied)) page.tables.push_back(std::move(table));
  return page;
}

}  // namespace siphon
