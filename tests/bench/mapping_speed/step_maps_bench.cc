// How much processor time it takes to find the map of eight stages on a DGX-1 (10,080 maps) with
// the shortest simulated step, how often it is proven, and how far the others are from a proof at
// most: for the drafts that swap to one kind of place, over models, schedules and capacities; and
// how long all cores take to prove those that are left, by the clock (MapsToProve). Then what
// strategies that use no lenders gain by a map, against workers on devices in order. Fails when a
// search takes longer than a second, or fewer are proven than two of three: where two workers copy
// over one uplink all the time, bounds are too low for a proof; when all cores do not prove the
// others; or when a plan takes longer than in order.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/process/core_count.h"
#include "launch/process/run_together.h"
#include "planner/drafts/maps/map_draft.h"
#include "planner/drafts/search_effort.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"
#include "tests/bench/machine_name.h"
#include "tests/bench/plan_gaps/gap_grid.h"
#include "tests/bench/plan_gaps/gap_report.h"

namespace siphon {
namespace {

constexpr double kMostSeconds = 1;
constexpr double kLeastProven = 2.0 / 3;

struct Search {
  std::string name;
  double seconds = 0;
  double gap = 0;  // percent, at most; 0: proven
  int64_t evaluated = 0;
  // With all cores, by the clock; 0: it was proven before.
  double seconds_to_prove = 0;
  bool is_proven = false;  // then
};

// Looks for the map with that effort. Ends the program where that fails.
MapProof Mapped(const GapInstance& instance, const SimulatedDraft& draft, const MapEffort& effort) {
  DraftSimulator simulator(instance.problem);
  const absl::StatusOr<MappedDraft> mapped = MapByStepTime(simulator, draft, effort);
  if (mapped.ok() && mapped->found.has_value()) {
    return ProofOf(MappingScore::kStepTime, *mapped->found);
  }
  std::cerr << instance.name << ": " << mapped.status() << "\n";
  std::exit(1);
}

// Drafts that do not fit have no step to shorten.
void AddSearch(const GapInstance& instance, const std::string& name, MakeDraft make,
               std::vector<Search>& searches) {
  DraftSimulator simulator(instance.problem);
  absl::StatusOr<SimulatedDraft> draft = make(simulator);
  if (!draft.ok() || !Fits(*draft)) return;
  const std::clock_t begin = std::clock();
  const MapProof proof = Mapped(instance, *draft, MapsFor(instance.problem));
  Search search{.name = instance.name + ", " + name,
                .seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC,
                .evaluated = proof.evaluated,
                .is_proven = proof.proven};
  const std::optional<double> gap = GapOf(proof);
  if (!gap.has_value()) {
    std::cerr << instance.name << ": nothing is known of other maps\n";
    std::exit(1);
  }
  search.gap = 100 * *gap;
  if (!proof.proven) {
    const auto since = std::chrono::steady_clock::now();
    search.is_proven = Mapped(instance, *draft, MapsToProve(instance.problem)).proven;
    search.seconds_to_prove =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
  }
  searches.push_back(std::move(search));
}

struct Gain {
  std::string name;
  Nanos in_order;
  Nanos step;
  double percent() const {
    return 100 * (static_cast<double>(in_order.value) / static_cast<double>(step.value) - 1);
  }
};

void AddGains(const GapInstance& instance, std::vector<Gain>& gains) {
  PlanningProblem in_order = instance.problem;
  in_order.mapping = IdentityMapping(WorkerCount(in_order.schedule));
  for (const char* name : {"keep", "recompute", "host_swap", "optimizer_offload"}) {
    const MemoryStrategy strategy = FindMemoryStrategy(name).value();
    const auto before = strategy.plan(in_order);
    const auto planned = strategy.plan(instance.problem);
    if (!before.ok() || !planned.ok()) continue;
    gains.push_back({absl::StrCat(instance.name, ", ", name), before->simulated.step_time,
                     planned->simulated.step_time});
  }
}

std::string Quantiles(const std::vector<double>& values) {
  return absl::StrFormat("%.3f / %.3f / %.3f", Quantile(values, 0.5), Quantile(values, 0.9),
                         Quantile(values, 1));
}

int Main() {
  std::cout << MachineName() << ", processor time\n";
  const auto grid = GapGrid(GapGridSize(), 1);
  if (!grid.ok()) {
    std::cerr << grid.status() << "\n";
    return 1;
  }
  std::vector<Search> searches;
  std::vector<Gain> gains;
  for (GapInstance instance : *grid) {
    if (!absl::StrContains(instance.name, " dgx1 ")) continue;
    instance.problem.side_by_side = {RunTogether, CoreCount()};
    AddSearch(instance, "d2d_swap", DraftPeerSwap, searches);
    AddSearch(instance, "host_swap", DraftHostSwap, searches);
    AddSearch(instance, "optimizer_offload", DraftOptimizerOffload, searches);
    AddGains(instance, gains);
  }
  std::vector<double> seconds;
  std::vector<double> gaps;
  for (const Search& search : searches) {
    seconds.push_back(search.seconds);
    gaps.push_back(search.gap);
    if (search.gap == 0 && search.seconds < kMostSeconds) continue;
    std::cout << absl::StreamFormat(
        "  %-50s %.3f s, %d maps simulated, at most %.2f %% above; %.2f s to prove\n", search.name,
        search.seconds, search.evaluated, search.gap, search.seconds_to_prove);
  }
  const auto proven = std::count(gaps.begin(), gaps.end(), 0);
  std::cout << absl::StreamFormat(
      "%d searches, %d proven\nseconds, median / 90 %% / worst: %s\n"
      "percent above the best map at most, likewise: %s\n",
      searches.size(), proven, Quantiles(seconds), Quantiles(gaps));
  std::vector<double> to_prove;
  for (const Search& search : searches) {
    if (search.seconds_to_prove > 0) to_prove.push_back(search.seconds_to_prove);
  }
  const bool all_proven =
      std::all_of(searches.begin(), searches.end(), [](const auto& s) { return s.is_proven; });
  std::cout << absl::StreamFormat(
      "the other %d with %d cores: %s proven, seconds by the clock, likewise: %s\n",
      to_prove.size(), CoreCount(), all_proven ? "all" : "NOT ALL", Quantiles(to_prove));
  std::vector<double> percents;
  for (const Gain& gain : gains) percents.push_back(gain.percent());
  const auto most = std::max_element(gains.begin(), gains.end(), [](const Gain& a, const Gain& b) {
    return a.percent() < b.percent();
  });
  std::cout << absl::StreamFormat(
      "%d plans without lenders; in order so many percent longer, likewise: %s\n"
      "  %s: %s in order, %s\n",
      gains.size(), Quantiles(percents), most->name, FormatNanos(most->in_order),
      FormatNanos(most->step));
  const bool kept =
      all_proven && Quantile(percents, 0) >= 0 && Quantile(seconds, 1) < kMostSeconds &&
      static_cast<double>(proven) >= kLeastProven * static_cast<double>(searches.size());
  std::cout << absl::StreamFormat(
      "each within %.0f s, %.0f %% proven, none slower than in order: %s\n", kMostSeconds,
      100 * kLeastProven, kept ? "kept" : "NOT KEPT");
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace siphon

int main() { return siphon::Main(); }
