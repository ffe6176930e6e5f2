#ifndef SIPHON_PLANNER_PERFORMANCE_PUBLISHED_FIGURES_H_
#define SIPHON_PLANNER_PERFORMANCE_PUBLISHED_FIGURES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace siphon {

// Figures 5, 7 and 8 of the out-of-core paper, calculated. It prints no numbers, so their shapes
// are what can be compared.

struct FigureSeries {
  std::string name;
  std::vector<std::optional<double>> values;  // [x]; nothing where the strategy cannot run
  friend bool operator==(const FigureSeries&, const FigureSeries&) = default;
};

enum class FigureScale { kLinear, kLogarithmic };

struct Figure {
  int number = 0;
  std::string title;
  std::string setting;  // model, device, link: what the paper leaves open is said to be assumed
  std::string x_label;
  std::string y_label;
  FigureScale x_scale = FigureScale::kLinear;
  std::vector<double> x;
  std::vector<FigureSeries> series;
  std::vector<std::string> findings;  // one sentence each, with our numbers
  friend bool operator==(const Figure&, const Figure&) = default;
};

// Figure 5: time of one iteration of ResNet-50 with out-of-core on and off, by batch. On a V100.
// Figure 7: images a second under unified memory, by batch.
// Figure 8: time of VGG16 relative to training in memory, by link throughput.
// Errors: NotFound for another number.
absl::StatusOr<Figure> PublishedFigure(int number);
std::vector<int> PublishedFigureNumbers();

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_PUBLISHED_FIGURES_H_
