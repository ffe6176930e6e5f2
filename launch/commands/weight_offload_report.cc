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
double PublishedSeconds(int millis) { return millis * 1e-3; }

}  // namespace

std::string WeightOffloadTableText(const std::vector<ComparedWeightOffloadRow>& rows) {
  std::vector<std::vector<std::string>> table;
  for (const ComparedWeightOffloadRow& row : rows) {
    const WeightOffloadRow& published = row.published;
    table.push_back({std::string(published.network), absl::StrCat(published.depth),
                     absl::StrCat(published.batch), absl::StrCat(published.compute_ms),
                     Millis(row.times.bound), Millis(row.times.trimmed), Millis(row.times.greedy),
                     absl::StrCat(published.greedy_ms), Millis(row.times.greedy_star),
                     absl::StrCat(published.greedy_star_ms), Millis(row.times.layer_to_layer),
                     absl::StrCat(published.layer_to_layer_ms)});
  }
  std::string text = absl::StrCat(
      "Table 1 of the weight offloading paper (hal-03580767): ms a step, 12 GB/s each way; ours "
      "simulated, \"paper\" as published\n\n",
      TextTable({"network", "depth", "batch", "compute", "bound", "trimmed", "greedy", "paper",
                 "greedy*", "paper", "L2L", "paper"},
                table),
      "\n");
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
         {"trimmed_greedy_seconds", SecondsOf(row.times.trimmed)},
         {"greedy_seconds", SecondsOf(row.times.greedy)},
         {"greedy_without_discount_seconds", SecondsOf(row.times.greedy_star)},
         {"layer_to_layer_seconds", SecondsOf(row.times.layer_to_layer)},
         {"published",
          {{"compute_seconds", PublishedSeconds(published.compute_ms)},
           {"greedy_seconds", PublishedSeconds(published.greedy_ms)},
           {"greedy_without_discount_seconds", PublishedSeconds(published.greedy_star_ms)},
           {"layer_to_layer_seconds", PublishedSeconds(published.layer_to_layer_ms)}}}});
  }
  json["assumptions"] = WeightOffloadAssumptions();
  return json.dump(2) + "\n";
}

}  // namespace siphon
