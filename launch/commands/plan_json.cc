#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "launch/commands/plan_explain.h"
#include "launch/commands/plan_limits.h"
#include "launch/commands/plan_map.h"
#include "launch/commands/plan_report.h"
#include "planner/placement_bytes.h"

namespace siphon {
namespace {

using Json = nlohmann::ordered_json;

double Seconds(Nanos time) { return static_cast<double>(time.value) / 1e9; }

Json SecondsJson(const std::optional<Nanos>& time) {
  return time.has_value() ? Json(Seconds(*time)) : Json();
}

Json NumberJson(const std::optional<double>& number) {
  return number.has_value() ? Json(*number) : Json();
}

Json WorkersJson(const StudiedPlan& studied) {
  Json json = {{"peak_bytes", Json::array()},
               {"capacity_bytes", Json::array()},
               {"mapping", Json::array()},
               {"partition", Json::array()}};
  const std::vector<DeviceId>& devices = studied.plan.mapping.device_of_worker;
  for (size_t worker = 0; worker < studied.shown().peak.size(); ++worker) {
    json["peak_bytes"].push_back(PeakOf(studied.shown(), worker).value);
    if (!studied.problem.capacity.empty()) {
      json["capacity_bytes"].push_back(CapacityOf(studied, worker).value);
    }
    json["mapping"].push_back(devices.empty() ? static_cast<int>(worker) : devices[worker].value);
  }
  for (const StageRange& stage : studied.problem.partition.stages) {
    json["partition"].push_back(stage.end - stage.begin);
  }
  return json;
}

Json ChoicesJson(const StudiedPlan& studied) {
  const PlacementBytes bytes = Sum(BytesByPlacement(studied.plan));
  Json choices = Json::object();
  for (size_t index = 0; index < bytes.size(); ++index) {
    choices[std::string(PlacementName(static_cast<Placement>(index)))] = bytes[index].value;
  }
  return choices;
}

Json StripesJson(const StudiedPlan& studied) {
  Json stripes = Json::array();
  for (const ParkedBytes& parked : ParkedBytesOf(studied.plan)) {
    stripes.push_back({{"owner", parked.owner.value},
                       {"lender", parked.lender.value},
                       {"bytes", parked.bytes.value},
                       {"worker", parked.worker}});
  }
  return stripes;
}

Json BoundJson(const LowerBound& bound) {
  Json json = {{"reason", bound.reason}, {"parts", Json::array()}};
  json["cannot_fit"] = bound.cannot_fit.has_value() ? Json(*bound.cannot_fit) : Json();
  for (const BoundPart& part : bound.parts) {
    json["parts"].push_back({{"reason", part.reason}, {"seconds", SecondsJson(part.time)}});
  }
  return json;
}

Json LimitJson(const StudiedPlan& studied) {
  const StepDiagnosis diagnosis = DiagnosePlan(studied);
  const std::optional<LaneTimeline>& lane = diagnosis.binding;
  return {{"name", StepLimitName(diagnosis.limit)},
          {"worker", diagnosis.worker},
          {"lane", lane.has_value() ? Json(lane->name) : Json()},
          {"shared", diagnosis.shared.empty() ? Json() : Json(diagnosis.shared)},
          {"text", DiagnosisText(diagnosis, *studied.step)},
          {"memory_saving_seconds", Seconds(diagnosis.saving_memory)}};
}

Json MapJson(const std::optional<MapProof>& map) {
  if (!map.has_value()) return {};
  return {{"score", MapScoreName(map->score)},
          {"proven", map->proven},
          {"seconds", Seconds(map->time)},
          {"bound_seconds", Seconds(map->least_time)},
          {"missing_bytes", map->missing.value},
          {"bound_missing_bytes", map->least_missing.value},
          {"evaluated", map->evaluated},
          {"bounded", map->bounded},
          {"text", MapText(*map)}};
}

Json FixJson(const PlanFix& fix) {
  return {{"set", fix.settings},
          {"meaning", fix.meaning},
          {"step_seconds", Seconds(fix.step_time)},
          {"max_peak_bytes", fix.largest_peak.value},
          {"device_bytes", fix.devices > Bytes(0) ? Json(fix.devices.value) : Json()}};
}

Json GroupJson(const ExplainedGroup& group) {
  const TensorGroup& tensors = group.planned.group;
  const GroupChoice& choice = group.planned.choice;
  Json json = {{"kind", GroupKindName(tensors.kind)},
               {"first_layer", tensors.layers.begin},
               {"last_layer", tensors.layers.end - 1},
               {"first_tensors", tensors.first_tensors},
               {"bytes", tensors.bytes.value},
               {"live", group.live},
               {"goes", group.goes},
               {"shortest_gap_seconds", Seconds(group.shortest_gap)},
               {"longest_gap_seconds", Seconds(group.longest_gap)},
               {"kept_gap_seconds", SecondsJson(group.kept_gap)},
               {"first_unused_seconds", {Seconds(group.unused_from), Seconds(group.unused_until)}},
               {"choice", PlacementName(choice.placement)},
               {"second_choice", PlacementName(choice.second_choice)},
               {"steps_on_host", group.steps_on_host},
               {"stripes", Json::array()},
               {"seconds_by_way",
                {{"recompute", SecondsJson(group.each.recompute)},
                 {"d2d_swap", SecondsJson(group.each.peers)},
                 {"host_swap", SecondsJson(group.each.host)},
                 {"nvme_swap", SecondsJson(group.each.nvme)}}},
               {"exposed_seconds_by_way",
                {{"recompute", SecondsJson(group.each.recompute)},
                 {"d2d_swap", SecondsJson(ExposedOf(group, group.each.peers))},
                 {"host_swap", SecondsJson(ExposedOf(group, group.each.host))},
                 {"nvme_swap", SecondsJson(ExposedOf(group, group.each.nvme))}}},
               {"no_d2d_swap", group.each.no_peers},
               {"because", group.why}};
  for (const Stripe& stripe : choice.stripes) {
    json["stripes"].push_back({{"lender", stripe.lender.value}, {"bytes", stripe.bytes.value}});
  }
  return json;
}

Json ExplainJson(const StudiedPlan& studied) {
  Json stages = Json::array();
  for (const ExplainedStage& stage : ExplainPlan(studied)) {
    Json groups = Json::array();
    for (const ExplainedGroup& group : stage.groups) groups.push_back(GroupJson(group));
    stages.push_back({{"stage", stage.stage.value},
                      {"worker", stage.worker.value},
                      {"device", stage.device.value},
                      {"groups", std::move(groups)}});
  }
  return stages;
}

Json PlanJson(const StudiedPlan& studied) {
  const bool fits = studied.step.has_value();
  Json json = {{"fits", fits},
               {"strategy", studied.strategy},
               {"settings", studied.settings},
               {"step_seconds", fits ? Json(Seconds(studied.step->step_time)) : Json()},
               {"tokens_per_second", NumberJson(TokensPerSecond(studied))},
               {"bubble_fraction", fits ? Json(studied.step->bubble_fraction) : Json()}};
  json.update(WorkersJson(studied));
  json["choices"] = ChoicesJson(studied);
  json["stripes"] = StripesJson(studied);
  json["host_peak_bytes"] = studied.shown().host_peak.value;
  json["other_peaks"] = Json::array();
  for (const HolderPeak& holder : studied.shown().other_peaks) {
    json["other_peaks"].push_back({{"name", holder.name}, {"bytes", holder.bytes.value}});
  }
  json["lower_bound_seconds"] = Seconds(studied.bound.step_time);
  json["gap"] = NumberJson(GapOf(studied));
  json["bound"] = BoundJson(studied.bound);
  json["limit"] = fits ? LimitJson(studied) : Json();
  json["map_search"] = MapJson(studied.map);
  json["kept_step_seconds"] = Seconds(studied.kept.step_time);
  json["costs"] = studied.plan.costs;
  const std::string remark = RemarkOn(studied);
  json["remark"] = remark.empty() ? Json() : Json(remark);
  json["planning_seconds"] = Seconds(studied.planning_time);
  if (!fits) json["reason"] = studied.misfit;
  return json;
}

Json ComparedJson(const ComparedPlan& plan) {
  const bool fits = plan.step_time.has_value();
  return {{"strategy", plan.name},
          {"fits", fits},
          {"step_seconds", SecondsJson(plan.step_time)},
          {"tokens_per_second", fits ? Json(plan.tokens_per_second) : Json()},
          {"gap", NumberJson(plan.gap)},
          {"recomputed_bytes", plan.recomputed.value},
          {"parked_bytes", plan.parked.value},
          {"remark", plan.remark}};
}

}  // namespace

std::string PlanReportJson(const PlanReport& report) {
  Json json = PlanJson(report.plan);
  if (!report.plan.step.has_value()) {
    json["smallest_fix"] = report.fixes.empty() ? Json() : FixJson(report.fixes.front());
    json["fixes"] = Json::array();
    for (const PlanFix& fix : report.fixes) json["fixes"].push_back(FixJson(fix));
    json["tried_in_vain"] = report.in_vain;
  }
  json["faster"] = report.faster.has_value() ? PlanJson(*report.faster) : Json();
  if (report.detail == PlanDetail::kGroups) json["explain"] = ExplainJson(report.plan);
  if (!report.what_ifs.empty()) {
    json["what_if"] = Json::array();
    for (const WhatIf& what_if : report.what_ifs) {
      Json plan = PlanJson(what_if.plan);
      plan["set"] = what_if.setting;
      if (!what_if.plan.step.has_value()) {
        plan["smallest_fix"] = what_if.fix.has_value() ? FixJson(*what_if.fix) : Json();
      }
      json["what_if"].push_back(std::move(plan));
    }
  }
  if (!report.comparison.empty()) {
    json["compare"] = Json::array();
    for (const ComparedPlan& plan : report.comparison) {
      json["compare"].push_back(ComparedJson(plan));
    }
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace siphon
