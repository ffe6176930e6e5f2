#ifndef SIPHON_LAUNCH_COMMANDS_OUT_OF_CORE_REPORT_H_
#define SIPHON_LAUNCH_COMMANDS_OUT_OF_CORE_REPORT_H_

#include <cstdint>
#include <string>

#include "planner/performance/compare_out_of_core.h"
#include "planner/performance/published_figures.h"

namespace siphon {

// What was compared.
struct OutOfCoreSetting {
  std::string model;
  std::string device;
  std::string precision;
  int64_t batch = 1;
  FarMemoryPath path;
  Bytes near_memory;
};

std::string ComparisonText(const OutOfCoreSetting& setting, const OutOfCoreComparison& comparison);
std::string ComparisonJson(const OutOfCoreSetting& setting, const OutOfCoreComparison& comparison);

std::string FigureText(const Figure& figure);
std::string FigureJson(const Figure& figure);
// A self-contained SVG file.
std::string FigureSvg(const Figure& figure);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_OUT_OF_CORE_REPORT_H_
