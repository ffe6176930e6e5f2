#include "launch/commands/weight_offload_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/output/text_table.h"

namespace siphon {
namespace {

using Json = nlohmann::ordered_json;

// Rounded to whole milliseconds, as the paper prints them.
std::string Millis(Nanos time) {
  return absl::StrFormat("%.0f", static_cast<double>(time.value) * 1e-6);
}

double SecondsOf(Nanos time) { return static_cast<double>(time.value) * 1e-9; }
double GapOf(Nanos time, Nanos bound) {
  return static_cast<double>(time.value) / static_cast<double>(bound.value) - 1;
}

std::string Percent(Nanos time, Nanos bound) {
  return absl::StrFormat("%.1f", 100 * GapOf(time, bound));
}

// "+": the minimum may be more.
std::string ProgramText(const std::optional<OffloadProgramBound>& program) {
  if (!program) return "-";
  return absl::StrCat(Millis(program->step_time),
                      program->search == OffloadSearch::kWhole ? "" : "+");
}

absl::string_view SearchName(OffloadSearch search) {
  switch (search) {
    case OffloadSearch::kWhole:
      return "whole";
    case OffloadSearch::kStopped:
      return "stopped";
    case OffloadSearch::kRelaxation:
      break;
  }
  return "relaxation";
}

Json ProgramJson(const std::optional<OffloadProgramBound>& program) {
  if (!program) return {};
  return {{"seconds", SecondsOf(program->step_time)}, {"search", SearchName(program->search)}};
}

double PublishedSeconds(int millis) { return millis * 1e-3; }

}  // namespace

std::string WeightOffloadTableText(const std::vector<ComparedWeightOffloadRow>& rows) {
  std::vector<std::vector<std::string>> table;
  for (const ComparedWeightOffloadRow& row : rows) {
    const WeightOffloadRow& published = row.published;
    table.push_back({std::string(published.network), absl::StrCat(published.depth),
                     absl::StrCat(published.batch), absl::StrCat(published.compute_ms),
                     ProgramText(row.times.program), absl::StrCat(published.compute_ms),
                     Millis(row.times.bound), Millis(row.times.trimmed),
                     Percent(row.times.trimmed, row.times.bound),
                     row.automatic ? Millis(*row.automatic) : "-",
                     row.automatic ? Percent(*row.automatic, row.times.bound) : "-",
                     Millis(row.times.greedy), absl::StrCat(published.greedy_ms),
                     Millis(row.times.greedy_star), absl::StrCat(published.greedy_star_ms),
                     Millis(row.times.layer_to_layer), absl::StrCat(published.layer_to_layer_ms)});
  }
  std::string text = absl::StrCat(
      "Table 1 of the weight offloading paper (hal-03580767): ms a step, 12 GB/s each way; ours "
      "simulated, \"paper\" as published\n\n",
      TextTable({"network", "depth", "batch", "compute", "ILP", "paper", "bound", "trimmed",
                 "gap %", "auto", "gap %", "greedy", "paper", "greedy*", "paper", "L2L", "paper"},
                table),
      "\nILP: the minimum of the integer program of section 6; +: only its relaxation was solved; "
      "-: "
      "it was not. A plan that does not idle proves it.\n"
      "Bound: the greater of the ILP and a bound by counting. Gap: above the bound.\n"
      "Auto: siphon's planner of pipelines on the row as one stage: the host updates behind the "
      "last "
      "backward, steps do not overlap; -: it has no plan that fits.\n");
  for (const std::string& assumption : WeightOffloadAssumptions()) {
    absl::StrAppend(&text, assumption, "\n");
  }
  return text;
}

std::string WeightOffloadTableJson(const std::vector<ComparedWeightOffloadRow>& rows) {
  Json json;
  json["table"] = 1;
  json["rows"] = Json::array();
  for (const ComparedWeightOffloadRow& row : rows) {
    const WeightOffloadRow& published = row.published;
    json["rows"].push_back(
        {{"network", published.network},
         {"depth", published.depth},
         {"batch", published.batch},
         {"compute_seconds", SecondsOf(row.times.compute)},
         {"bound_seconds", SecondsOf(row.times.bound)},
         {"integer_program", ProgramJson(row.times.program)},
         {"gap", GapOf(row.times.trimmed, row.times.bound)},
         {"auto_seconds", row.automatic ? Json(SecondsOf(*row.automatic)) : Json()},
         {"auto_gap", row.automatic ? Json(GapOf(*row.automatic, row.times.bound)) : Json()},
         {"trimmed_greedy_seconds", SecondsOf(row.times.trimmed)},
         {"greedy_seconds", SecondsOf(row.times.greedy)},
         {"greedy_without_discount_seconds", SecondsOf(row.times.greedy_star)},
         {"layer_to_layer_seconds", SecondsOf(row.times.layer_to_layer)},
         {"published",
          {{"compute_seconds", PublishedSeconds(published.compute_ms)},
           {"integer_program_seconds", PublishedSeconds(published.compute_ms)},
           {"greedy_seconds", PublishedSeconds(published.greedy_ms)},
           {"greedy_without_discount_seconds", PublishedSeconds(published.greedy_star_ms)},
           {"layer_to_layer_seconds", PublishedSeconds(published.layer_to_layer_ms)}}}});
  }
  json["assumptions"] = WeightOffloadAssumptions();
  return json.dump(2) + "\n";
}

}  // namespace siphon
