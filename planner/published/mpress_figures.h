#ifndef SIPHON_PLANNER_PUBLISHED_MPRESS_FIGURES_H_
#define SIPHON_PLANNER_PUBLISHED_MPRESS_FIGURES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/baselines/memory_baseline.h"
#include "planner/published/mpress_instance.h"
#include "planner/published/mpress_run.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {

// What a red cross in Figure 7 or 8 says, or its absence.
enum class Outcome { kRuns, kFails, kNotShown };

// A bar of Figure 7 or 8, as the text of section IV.B or IV.C tells it. The paper's systems have
// our strategies' names: PipeDream or DAPPLE alone is "keep", MPress with D2D swap only "d2d_swap".
struct MpressBar {
  std::string model;
  std::string strategy;
  Outcome outcome = Outcome::kNotShown;
};

// Throughput of one strategy over that of another, on one model. The text gives some for all models
// of a figure together, as a range from `ratio` to `most`; `most` is 0 where it is one number.
struct MpressRatio {
  std::string model;
  std::string strategy;
  std::string over;
  double ratio = 0;
  double most = 0;
};

struct MpressFigure {
  std::string name;     // "7", "8a", "8b"
  std::string machine;  // as the paper says it
  std::vector<std::string> models;
  std::vector<MpressBar> bars;
  std::vector<MpressRatio> ratios;
};
// Figure 7 (Bert on PipeDream, p3dn.24xlarge), 8a (GPT on DAPPLE, DGX-1 with V100) and 8b (GPT, the
// A100 server, "DGX-2" in the paper). The ZeRO systems of Figure 8 are planner/baselines.
const std::vector<MpressFigure>& MpressFigures();

// Is told what is being planned.
using MpressProgress = absl::FunctionRef<void(absl::string_view doing)>;

// Each model under each strategy. Errors: as MakeMpressInstance and RunInstance.
absl::StatusOr<std::vector<MpressRun>> RunFigure(
    const MpressFigure& figure, const Topology& topology, const MpressTools& tools,
    const std::vector<MemoryStrategy>& strategies, MpressProgress say = [](absl::string_view) {});

// Each model under each baseline, with both sizes of a step.
// Errors: as MakeMpressInstance; those of baselines but for ResourceExhausted.
absl::StatusOr<std::vector<MpressRun>> RunBaselines(
    const MpressFigure& figure, const Topology& topology, const MpressTools& tools,
    const std::vector<MemoryBaseline>& baselines, MpressProgress say = [](absl::string_view) {});

Outcome PublishedOutcome(const MpressFigure& figure, absl::string_view model,
                         absl::string_view strategy);
// Nothing where one of the two does not run.
std::optional<double> RatioOf(const std::vector<MpressRun>& runs, const MpressRatio& published);

// Ours beside the paper's: who runs, TFLOPS, ratios; of baselines with both sizes of a step.
std::string MpressFigureText(const MpressFigure& figure, const std::vector<MpressRun>& runs);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PUBLISHED_MPRESS_FIGURES_H_
