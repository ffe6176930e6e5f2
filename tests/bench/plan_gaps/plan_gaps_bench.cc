// How far from the best possible plan `auto` is, at most: plans a grid of instances with every
// strategy, bounds each from below, and prints the distribution of the gaps; then small instances
// beside the optimum of whole layers; then tiny ones, beside the best of all their drafts. Fails
// when auto loses to another strategy, or beats a bound.
// --only takes the instances of the grid with these words in their names, and nothing else.
//   plan_gaps_bench [--instances N] [--seed S] [--small N] [--tiny N] [--each] [--only WORDS]
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "planner/bounds/linear/solve_linear_program.h"
#include "planner/strategies/memory_strategy.h"
#include "tests/bench/plan_gaps/gap_report.h"
#include "tests/bench/plan_gaps/measure_tiny.h"

namespace siphon {
namespace {

struct GapArguments {
  int instances = 1'000'000;  // all
  int seed = 1;
  int small = 60;
  int tiny = 200;  // those with too many drafts to try are left out
  bool each = false;
  std::string only;
};

[[noreturn]] void RefuseArguments(const std::string& argument) {
  std::cerr << "plan_gaps_bench: do not understand " << argument
            << "; known: --instances N, --seed S, --small N, --tiny N, --each, --only WORDS\n";
  std::exit(2);
}

GapArguments ArgumentsOf(const std::vector<std::string>& words) {
  GapArguments arguments;
  for (size_t place = 0; place < words.size(); ++place) {
    const std::string& word = words[place];
    if (word == "--each") {
      arguments.each = true;
      continue;
    }
    if (word == "--only" && place + 1 < words.size()) {
      arguments.only = words[++place];
      arguments.small = arguments.tiny = 0;
      continue;
    }
    int* number = word == "--instances" ? &arguments.instances
                  : word == "--seed"    ? &arguments.seed
                  : word == "--small"   ? &arguments.small
                  : word == "--tiny"    ? &arguments.tiny
                                        : nullptr;
    const bool good = number != nullptr && place + 1 < words.size() &&
                      absl::SimpleAtoi(words[place + 1], number) && *number >= 0;
    if (!good) RefuseArguments(word);
    ++place;
  }
  return arguments;
}

template <typename T>
T OrExit(absl::StatusOr<T> result, const std::string& what) {
  if (result.ok()) return *std::move(result);
  std::cerr << what << ": " << result.status() << "\n";
  std::exit(1);
}

void PrintOutcome(const GapOutcome& one) {
  std::cout << absl::StreamFormat("%-40s ", one.name);
  if (one.Gap().has_value()) std::cout << absl::StreamFormat("%7.2f %% ", 100 * *one.Gap());
  for (const StrategyOutcome& other : one.others) {
    std::cout << " " << other.strategy << " "
              << (other.step_time.has_value() ? FormatNanos(*other.step_time) : "-");
  }
  std::cout << absl::StreamFormat(
      "  auto %s (%.2f s)  bound %s (%s, %.2f s)\n",
      one.planned.step_time.has_value() ? FormatNanos(*one.planned.step_time) : "-",
      one.planned.seconds, FormatNanos(one.bound.step_time), one.bound.reason, one.bound_seconds);
  if (one.map.has_value()) {
    std::cout << absl::StreamFormat(
        "    map: missing %d least %d, time %s least %s, %s, evaluated %d, bounded %d\n",
        one.map->missing.value, one.map->least_missing.value, FormatNanos(one.map->time),
        FormatNanos(one.map->least_time), one.map->proven ? "proven" : "open", one.map->evaluated,
        one.map->bounded);
  }
}

std::vector<GapOutcome> Measure(const std::vector<GapInstance>& instances, bool each) {
  std::vector<GapOutcome> outcomes;
  for (const GapInstance& instance : instances) {
    outcomes.push_back(OrExit(MeasureGap(instance), instance.name));
    if (each) PrintOutcome(outcomes.back());
  }
  return outcomes;
}

// What must never be.
struct Violations {
  int64_t lost = 0;    // to another strategy
  int64_t beaten = 0;  // bounds
};

void Count(const std::vector<GapOutcome>& outcomes, Violations* violations) {
  for (const GapOutcome& one : outcomes) {
    violations->lost += one.Winners().empty() ? 0 : 1;
    violations->beaten += one.Gap().value_or(0) < 0 ? 1 : 0;
  }
}

// In percent; goals are of the worst and of the median.
void PrintGoal(absl::string_view what, const std::vector<double>& percents,
               std::optional<double> median, double worst) {
  const auto met = [](double found, double goal) { return found <= goal ? "met" : "missed"; };
  std::string text;
  if (median.has_value()) {
    absl::StrAppendFormat(&text, "median at most %g %%: %s; ", *median,
                          met(Quantile(percents, 0.5), *median));
  }
  absl::StrAppendFormat(&text, "worst at most %g %%: %s (%d of %d above)", worst,
                        met(Quantile(percents, 1), worst),
                        std::count_if(percents.begin(), percents.end(),
                                      [worst](double percent) { return percent > worst; }),
                        percents.size());
  std::cout << "goal, " << what << ": " << text << "\n";
}

std::string QuantilesOf(const std::vector<double>& percents) {
  return absl::StrFormat("median %.2f %%, 90 %% below %.2f %%, worst %.2f %%, least %.2f %%",
                         Quantile(percents, 0.5), Quantile(percents, 0.9), Quantile(percents, 1),
                         Quantile(percents, 0));
}

// auto's step times above the optimum of the same model with whole layers, in percent.
void ReportOptima(const std::vector<GapInstance>& instances,
                  const std::vector<GapOutcome>& outcomes) {
  constexpr int kMostNodes = 20'000;
  std::vector<double> above;
  for (size_t place = 0; place < instances.size(); ++place) {
    if (!outcomes[place].planned.step_time.has_value()) continue;
    const auto optimum = WholeLayerOptimum(instances[place].problem, kMostNodes);
    if (!optimum.ok()) continue;
    const auto step = static_cast<double>(outcomes[place].planned.step_time->value);
    above.push_back(100 * (step / static_cast<double>(optimum->value) - 1));
  }
  if (above.empty()) return;
  std::cout << absl::StreamFormat("above the whole-layer optimum, %d instances: %s\n", above.size(),
                                  QuantilesOf(above));
  PrintGoal("small, whole layers", above, std::nullopt, 1);
}

// auto's steps above the best of all drafts, and the better of both above the bound.
void ReportTiny(const GapArguments& arguments, Violations* violations) {
  std::vector<double> above;
  std::vector<double> open;
  int64_t drafts = 0;
  int optimal = 0;
  for (int index = 0; index < arguments.tiny; ++index) {
    const GapInstance instance =
        OrExit(TinyGapInstance(static_cast<uint32_t>(arguments.seed + index)), "a tiny instance");
    const auto measured = MeasureTiny(instance);
    if (absl::IsResourceExhausted(measured.status())) continue;
    const TinyOutcome outcome = OrExit(measured, instance.name);
    if (arguments.each) {
      std::cout << absl::StreamFormat("%-32s %6d drafts, best %s, auto %s, bound %s\n",
                                      instance.name, outcome.drafts, FormatNanos(outcome.best),
                                      FormatNanos(outcome.planned), FormatNanos(outcome.bound));
    }
    drafts += outcome.drafts;
    const auto best = static_cast<double>(outcome.best.value);
    const auto least = static_cast<double>(std::min(outcome.best, outcome.planned).value);
    above.push_back(100 * (static_cast<double>(outcome.planned.value) / best - 1));
    open.push_back(100 * (least / static_cast<double>(outcome.bound.value) - 1));
    optimal += outcome.planned <= outcome.best ? 1 : 0;
  }
  if (above.empty()) return;
  std::cout << absl::StreamFormat(
      "\ntiny: %d instances, all their %d drafts simulated; auto has the best of them, or better, "
      "in "
      "%d\n  auto above the best draft: %s\n  the better of both above the bound: %s\n",
      above.size(), drafts, optimal, QuantilesOf(above), QuantilesOf(open));
  PrintGoal("tiny, all drafts", above, std::nullopt, 1);
  violations->beaten += std::count_if(open.begin(), open.end(), [](double gap) { return gap < 0; });
}

int Main(const std::vector<std::string>& words) {
  const GapArguments arguments = ArgumentsOf(words);
  auto grid =
      OrExit(GapGrid(arguments.instances, static_cast<uint32_t>(arguments.seed)), "the grid");
  std::erase_if(grid, [&](const GapInstance& instance) {
    return instance.name.find(arguments.only) == std::string::npos;
  });
  if (grid.empty() && !arguments.only.empty()) {
    std::cerr << "plan_gaps_bench: no name in the grid has '" << arguments.only
              << "' in it; names are like 'gpt dgx_a100 zb_h1 25%'\n";
    return 2;
  }
  const std::vector<GapOutcome> outcomes = Measure(grid, arguments.each);
  if (!outcomes.empty()) {
    std::cout << GapReport(outcomes);
    std::vector<double> gaps;
    for (const GapOutcome& one : outcomes) {
      if (one.Gap().has_value()) gaps.push_back(100 * *one.Gap());
    }
    PrintGoal("gap", gaps, 3, 12);
  }
  std::vector<GapInstance> small;
  for (int index = 0; index < arguments.small; ++index) {
    small.push_back(OrExit(SmallGapInstance(static_cast<uint32_t>(arguments.seed + index)),
                           "a small instance"));
  }
  const std::vector<GapOutcome> small_outcomes = Measure(small, arguments.each);
  if (!small.empty()) {
    std::cout << "\nsmall: " << GapReport(small_outcomes);
    if (HasLinearSolver()) ReportOptima(small, small_outcomes);
  }
  Violations violations;
  ReportTiny(arguments, &violations);
  Count(outcomes, &violations);
  Count(small_outcomes, &violations);
  std::cout << absl::StreamFormat("auto lost %d times, %d bounds were beaten\n", violations.lost,
                                  violations.beaten);
  return violations.lost + violations.beaten == 0 ? 0 : 1;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) {
  return siphon::Main(std::vector<std::string>(argv + 1, argv + argc));
}
