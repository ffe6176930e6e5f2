// siphon plan --published: MPress's evaluation, planned anew.

#include "launch/commands/plan_published.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/topology/topology_file.h"
#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/published/mpress_report.h"
#include "planner/published/mpress_table3.h"
#include "planner/published/mpress_table4.h"
#include "planner/status.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kAll = "all";
constexpr char kServerNotes[] =
    "Servers: the presets aws_p3dn_24xlarge (Figure 7), dgx1_v100_nvme (8a), dgx_a100 (8b) and "
    "grace_hopper; of the second the paper says\nonly that it has more host memory than the first, "
    "and NVMe drives: ASSUMED 1536 GB and the drives of the first.\n";

absl::StatusOr<MpressServers> Servers() {
  MpressServers servers;
  SIPHON_ASSIGN_OR_RETURN(servers.bert, FindTopologyPreset("aws_p3dn_24xlarge"));
  SIPHON_ASSIGN_OR_RETURN(servers.gpt, FindTopologyPreset("dgx1_v100_nvme"));
  SIPHON_ASSIGN_OR_RETURN(servers.a100, FindTopologyPreset("dgx_a100"));
  SIPHON_ASSIGN_OR_RETURN(servers.grace, FindTopologyPreset("grace_hopper"));
  return servers;
}

MpressTools Tools() {
  return {.build_schedule = BuildSchedule, .partition = [](const ModelSpec& model, int stages) {
            return PartitionModel(model, stages, "balanced");
          }};
}

absl::StatusOr<std::vector<MpressSection>> SectionsNamed(absl::string_view name) {
  std::vector<MpressSection> sections;
  for (const auto& [section, known] : MpressSectionNames()) {
    if (name == kAll || name == known) sections.push_back(section);
  }
  if (!sections.empty()) return sections;
  return absl::NotFoundError(absl::StrCat("--published: no section '", name,
                                          "'; known: ", absl::StrJoin(PublishedSections(), ", ")));
}

double Seconds(Nanos time) {
  constexpr double kNanosPerSecond = 1e9;
  return static_cast<double>(time.value) / kNanosPerSecond;
}

Json SavedJson(const MemorySaved& saved) {
  Json stages = Json::array();
  for (const StageId stage : saved.stages) stages.push_back(stage.value);
  return {{"bytes", saved.bytes.value}, {"stages", std::move(stages)}};
}

Json RunJson(const MpressRun& run) {
  Json json{{"model", run.model}, {"strategy", run.strategy}, {"fits", run.status.ok()}};
  if (!run.status.ok()) {
    json["reason"] = ReasonOf(run);
    return json;
  }
  json["step_seconds"] = Seconds(run.step_time);
  json["samples_per_second"] = run.samples_per_second;
  json["tflops"] = run.tflops;
  json["recompute"] = SavedJson(run.recomputed);
  json["host_swap"] = SavedJson(run.host);
  json["d2d_swap"] = SavedJson(run.peers);
  json["overflow_bytes"] = run.overflow.value;
  return json;
}

Json FigureJson(const MpressFigure& figure, const std::vector<MpressRun>& runs) {
  Json json{{"figure", figure.name}, {"runs", Json::array()}, {"ratios", Json::array()}};
  for (const MpressRun& run : runs) {
    Json& row = json["runs"].emplace_back(RunJson(run));
    const Outcome published = PublishedOutcome(figure, run.model, run.strategy);
    row["published_fits"] =
        published == Outcome::kNotShown ? Json(nullptr) : Json(published == Outcome::kRuns);
  }
  for (const MpressRatio& ratio : figure.ratios) {
    const std::optional<double> ours = RatioOf(runs, ratio);
    json["ratios"].push_back({{"model", ratio.model},
                              {"strategy", ratio.strategy},
                              {"over", ratio.over},
                              {"ours", ours ? Json(*ours) : Json(nullptr)},
                              {"published", ratio.ratio},
                              {"published_most", ratio.most > 0 ? ratio.most : ratio.ratio}});
  }
  return json;
}

Json BarJson(const MpressFigure9Bar& bar) {
  return {{"step_seconds", Seconds(bar.step_time)},
          {"recompute", SavedJson(bar.recomputed)},
          {"host_swap", SavedJson(bar.host)},
          {"d2d_swap", SavedJson(bar.peers)}};
}

Json HidingJson(const HidingRate& rate) {
  return {{"each_way", rate.each_way.value}, {"together", rate.together.value}};
}

Json ProjectionJson(const MpressProjection& projection) {
  Json json{{"machine", projection.machine},
            {"capacity_bytes", projection.capacity.value},
            {"demand_bytes", Json::array()},
            {"recompute_share", projection.recompute_share},
            {"steps", Json::array()}};
  for (const Bytes demand : projection.demand) json["demand_bytes"].push_back(demand.value);
  for (const ProjectedStep& step : projection.steps) {
    Json& row = json["steps"].emplace_back();
    row["at_peak"] = step.speed == ProjectedSpeed::kPeak;
    row["kept_step_seconds"] = Seconds(step.kept_step);
    row["hiding_bytes_per_second"] = HidingJson(step.hiding);
    for (const MpressRun& run : step.runs) row["runs"].push_back(RunJson(run));
  }
  return json;
}

Json Table3Json() {
  Json rows = Json::array();
  for (const MpressTensor& tensor : MpressTable3()) {
    rows.push_back({{"model", tensor.model},
                    {"tensor", tensor.name},
                    {"choice", std::string(PlacementName(MpressChoice(tensor.times)))},
                    {"published", std::string(PlacementName(tensor.choice))}});
  }
  return rows;
}

Json ShareJson(const MpressShare& share) {
  Json stages = Json::array();
  for (int stage = share.first_stage; stage <= share.last_stage; ++stage) stages.push_back(stage);
  return {{"bytes", static_cast<int64_t>(share.gigabytes * 1e9)}, {"stages", std::move(stages)}};
}

Json Table4Json(const std::vector<MpressRun>& runs) {
  Json rows = Json::array();
  for (const MpressRun& run : runs) {
    Json& row = rows.emplace_back(RunJson(run));
    for (const MpressSavings& published : MpressTable4()) {
      if (published.model != run.model) continue;
      row["published"] = {{"recompute", ShareJson(published.recomputed)},
                          {"host_swap", ShareJson(published.host)},
                          {"d2d_swap", ShareJson(published.peers)},
                          {"overflow_bytes", PublishedOverflow(published).value}};
    }
  }
  return rows;
}

std::string ReportJson(const MpressReport& report) {
  Json json = Json::object();
  for (const MpressSection section : report.sections) {
    if (section == MpressSection::kTable3) json["table_3"] = Table3Json();
    if (section != MpressSection::kTable4) continue;
    json["table_4"] = Table4Json(report.table4);
  }
  for (const auto& [figure, runs] : report.figures) {
    json["figures"].push_back(FigureJson(figure, runs));
  }
  for (const MpressFigure9& figure : report.figure9) {
    json["figure_9"].push_back({{"model", figure.model},
                                {"machine", figure.machine},
                                {"plain", BarJson(figure.plain)},
                                {"mapped", BarJson(figure.mapped)},
                                {"striped", BarJson(figure.striped)},
                                {"complete", BarJson(figure.complete)}});
  }
  if (report.section5) json["section_5"] = ProjectionJson(*report.section5);
  return json.dump(2) + "\n";
}

}  // namespace

std::vector<std::string> PublishedSections() {
  std::vector<std::string> names{std::string(kAll)};
  for (const MpressSectionName& section : MpressSectionNames()) names.emplace_back(section.name);
  return names;
}

absl::StatusOr<std::string> PublishedPlans(absl::string_view section, OutputFormat format,
                                           absl::FunctionRef<void(absl::string_view)> say) {
  MpressRequest request{
      .tools = Tools(), .strategies = MemoryStrategies(), .baselines = MemoryBaselines()};
  SIPHON_ASSIGN_OR_RETURN(request.sections, SectionsNamed(section));
  SIPHON_ASSIGN_OR_RETURN(request.servers, Servers());
  SIPHON_ASSIGN_OR_RETURN(const MpressReport report, RunMpressReport(request, say));
  if (format == OutputFormat::kJson) return ReportJson(report);
  return absl::StrCat(kServerNotes, MpressReportText(report));
}

}  // namespace siphon
