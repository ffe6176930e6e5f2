#include "launch/commands/out_of_core_report.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/output/svg_plot.h"
#include "launch/output/text_table.h"

namespace siphon {
namespace {

using Json = nlohmann::ordered_json;

double SecondsOf(Nanos nanos) { return static_cast<double>(nanos.value) * 1e-9; }

double TimesAsLong(Nanos time, Nanos compute) {
  return SecondsOf(time) / std::max(SecondsOf(compute), 1e-9);
}

std::vector<std::string> RowOf(const OutOfCoreResult& result, Nanos compute) {
  if (!result.step) return {result.title, "does not fit"};
  const OutOfCoreStep& step = *result.step;
  return {result.title,
          FormatNanos(step.step_time),
          absl::StrFormat("%.2f", TimesAsLong(step.step_time, compute)),
          FormatNanos(step.stall),
          absl::StrFormat("%.0f %%", 100 * step.utilization),
          absl::StrCat(step.swapped_layers),
          FormatBytes(step.moved_out),
          FormatBytes(step.peak)};
}

Json StepJson(const OutOfCoreStep& step) {
  Json json;
  json["step_seconds"] = SecondsOf(step.step_time);
  json["stall_seconds"] = SecondsOf(step.stall);
  json["utilization"] = step.utilization;
  json["swapped_layers"] = step.swapped_layers;
  json["swapped_out_bytes"] = step.moved_out.value;
  json["swapped_in_bytes"] = step.moved_in.value;
  json["peak_bytes"] = step.peak.value;
  json["catch_up_seconds"] = step.catch_up ? Json(SecondsOf(*step.catch_up)) : Json();
  return json;
}

Json SecondsOrNull(const std::optional<Nanos>& time) {
  return time ? Json(SecondsOf(*time)) : Json();
}

}  // namespace

std::string ComparisonText(const OutOfCoreSetting& setting, const OutOfCoreComparison& comparison) {
  std::string text = absl::StrCat(
      setting.model, ", batch ", setting.batch, ", ", setting.precision, " on ", setting.device,
      " (calculated, not measured); far memory at ", FormatRate(setting.path.out), " each way\n",
      "near memory ", FormatBytes(setting.near_memory), ": ", FormatBytes(comparison.resident),
      " for weights, gradients, optimizer state and workspace, ", FormatBytes(comparison.capacity),
      " for saved tensors\nthe batch saves ", FormatBytes(comparison.saved),
      ", forward and backward compute for ", FormatNanos(comparison.compute), "\n\n");
  std::vector<std::vector<std::string>> rows;
  for (const OutOfCoreResult& result : comparison.results) {
    rows.push_back(RowOf(result, comparison.compute));
  }
  absl::StrAppend(&text,
                  TextTable({"strategy", "step", "x compute", "stalls", "utilisation",
                             "layers swapped", "out (and in)", "peak"},
                            rows),
                  "\n");
  for (const OutOfCoreResult& result : comparison.results) {
    if (result.step) continue;
    absl::StrAppend(&text, result.title, " does not fit: ", result.why_not, "\n");
  }
  for (const std::string& conclusion : comparison.conclusions) {
    absl::StrAppend(&text, conclusion, "\n");
  }
  return text;
}

std::string ComparisonJson(const OutOfCoreSetting& setting, const OutOfCoreComparison& comparison) {
  Json json;
  json["model"] = setting.model;
  json["device"] = setting.device;
  json["precision"] = setting.precision;
  json["batch"] = setting.batch;
  json["out_bytes_per_second"] = setting.path.out.value;
  json["in_bytes_per_second"] = setting.path.in.value;
  json["near_memory_bytes"] = setting.near_memory.value;
  json["resident_bytes"] = comparison.resident.value;
  json["saved_bytes"] = comparison.saved.value;
  json["capacity_bytes"] = comparison.capacity.value;
  json["compute_seconds"] = SecondsOf(comparison.compute);
  json["strategies"] = Json::object();
  for (const OutOfCoreResult& result : comparison.results) {
    Json& row = json["strategies"][result.name];
    row["fits"] = result.step.has_value();
    if (result.step) row.update(StepJson(*result.step));
    if (!result.step) row["why_not"] = result.why_not;
  }
  json["capacity_based_with_twice_the_link_seconds"] = SecondsOrNull(comparison.twice_the_link);
  json["capacity_based_with_twice_the_memory_seconds"] = SecondsOrNull(comparison.twice_the_memory);
  json["conclusions"] = comparison.conclusions;
  return json.dump(2) + "\n";
}

std::string FigureText(const Figure& figure) {
  std::vector<std::string> header = {figure.x_label};
  for (const FigureSeries& series : figure.series) header.push_back(series.name);
  std::vector<std::vector<std::string>> rows;
  for (size_t point = 0; point < figure.x.size(); ++point) {
    std::vector<std::string> row = {absl::StrFormat("%g", figure.x[point])};
    for (const FigureSeries& series : figure.series) {
      const std::optional<double>& value = series.values[point];
      row.push_back(value ? absl::StrFormat("%#.4g", *value) : "does not fit");
    }
    rows.push_back(std::move(row));
  }
  std::string text =
      absl::StrCat("Figure ", figure.number, ": ", figure.title, "\n", figure.setting, "\n",
                   figure.y_label, "\n\n", TextTable(header, rows), "\n");
  for (const std::string& finding : figure.findings) absl::StrAppend(&text, finding, "\n");
  return text;
}

std::string FigureJson(const Figure& figure) {
  Json json;
  json["figure"] = figure.number;
  json["title"] = figure.title;
  json["setting"] = figure.setting;
  json["x_label"] = figure.x_label;
  json["y_label"] = figure.y_label;
  json["x"] = figure.x;
  json["series"] = Json::array();
  for (const FigureSeries& series : figure.series) {
    Json values = Json::array();
    for (const std::optional<double>& value : series.values) {
      values.push_back(value ? Json(*value) : Json());
    }
    json["series"].push_back({{"name", series.name}, {"values", values}});
  }
  json["findings"] = figure.findings;
  return json.dump(2) + "\n";
}

std::string FigureSvg(const Figure& figure) {
  LinePlot plot{.title = figure.title,
                .subtitle = figure.setting,
                .x_label = figure.x_label,
                .y_label = figure.y_label,
                .x_scale = figure.x_scale == FigureScale::kLogarithmic ? PlotScale::kLogarithmic
                                                                       : PlotScale::kLinear,
                .x = figure.x,
                .notes = figure.findings};
  for (const FigureSeries& series : figure.series) {
    plot.series.push_back({series.name, series.values});
  }
  return SvgLinePlot(plot);
}

}  // namespace siphon
