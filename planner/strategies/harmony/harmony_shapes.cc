#include "planner/strategies/harmony/harmony_shapes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace siphon {
namespace {

// With more stages a worker than this, not every number of them is tried.
constexpr int kFewChunks = 4;
constexpr int kFewLayers = 4;
// With more combinations of stages, packs and groups than this, groups forward and backward are
// alike at first.
constexpr size_t kFewShapes = 90;

// Forward and backward.
enum class HarmonyPacks { kAll, kAlike };
enum class HarmonyGroups { kAlike, kApart };

std::vector<int> DivisorsOf(int number) {
  std::vector<int> divisors;
  for (int divisor = 1; divisor <= number; ++divisor) {
    if (number % divisor == 0) divisors.push_back(divisor);
  }
  return divisors;
}

// Stages a worker that are tried: powers of two and the most; and, with packs that are alike, the
// fewest stages that have no more than so many layers, for a few numbers of layers.
std::map<int, HarmonyPacks> ChunksFor(int layers, int workers) {
  const int most = layers / workers;
  std::map<int, HarmonyPacks> chunks;
  for (int count = 1; count <= most; ++count) {
    const bool power = (count & (count - 1)) == 0;
    if (most <= kFewChunks || power || count == most) chunks[count] = HarmonyPacks::kAll;
  }
  for (int stage = 2; stage <= kFewLayers; ++stage) {
    const int count = (layers + workers * stage - 1) / (workers * stage);
    if (count <= most) chunks.try_emplace(count, HarmonyPacks::kAlike);
  }
  return chunks;
}

// A stage that steps has at most its worker's whole memory.
HarmonyWorkers WorkersOf(const PlanningProblem& problem) {
  HarmonyWorkers workers = WorkersThatShare(problem.topology, problem.transport.host_rate,
                                            WorkerCount(problem.schedule));
  workers.microbatches = problem.schedule.microbatches;
  for (const Bytes capacity : problem.capacity) {
    if (capacity == Bytes(0)) continue;
    workers.room = workers.room == Bytes(0) ? capacity : std::min(workers.room, capacity);
  }
  return workers;
}

HarmonyCutShape CutShapeOf(const ScheduleShape& shape) {
  const ScheduleOptions& options = shape.options;
  const int block = std::lcm(options.forward_pack, options.backward_pack);
  return {.rounds = shape.chunks / block,
          .block = block,
          .visits = {.forward = shape.microbatches / options.microbatch_group,
                     .backward = shape.microbatches / options.backward_group}};
}

// Shapes with these packs, each with its own programs, by groups forward and backward.
std::vector<ScheduleShape> ShapesWith(ScheduleShape shape, HarmonyGroups groups) {
  ScheduleOptions& options = shape.options;
  const std::vector<int> all = {shape.microbatches};
  const std::vector<int> divisors = DivisorsOf(shape.microbatches);
  const std::vector<int>& forward = options.forward_pack == shape.chunks ? all : divisors;
  const std::vector<int>& backward = options.backward_pack == shape.chunks ? all : divisors;
  const bool both = forward.size() == backward.size();
  std::vector<ScheduleShape> shapes;
  for (const int forward_group : forward) {
    for (const int backward_group : backward) {
      if (both && groups == HarmonyGroups::kAlike && forward_group != backward_group) continue;
      options.microbatch_group = forward_group;
      options.backward_group = backward_group;
      shapes.push_back(shape);
    }
  }
  return shapes;
}

std::vector<ScheduleShape> ShapesOf(const PlanningProblem& problem, HarmonyGroups groups) {
  const int workers = WorkerCount(problem.schedule);
  const auto layers = static_cast<int>(problem.profile.layers.size());
  std::vector<ScheduleShape> shapes;
  for (const auto& [chunks, packs] : ChunksFor(layers, workers)) {
    for (const int forward_pack : DivisorsOf(chunks)) {
      for (const int backward_pack : DivisorsOf(chunks)) {
        if (packs == HarmonyPacks::kAlike && forward_pack != backward_pack) continue;
        const ScheduleShape packed{
            .workers = workers,
            .chunks = chunks,
            .microbatches = problem.schedule.microbatches,
            .options = {.forward_pack = forward_pack, .backward_pack = backward_pack}};
        const std::vector<ScheduleShape> more = ShapesWith(packed, groups);
        shapes.insert(shapes.end(), more.begin(), more.end());
      }
    }
  }
  return shapes;
}

}  // namespace

HarmonyShapes::HarmonyShapes(const PlanningProblem& problem)
    : problem_(problem), cutter_(problem.profile, WorkersOf(problem)) {}

std::vector<HarmonyChoice> HarmonyShapes::Listed() {
  std::vector<ScheduleShape> shapes = ShapesOf(problem_, HarmonyGroups::kApart);
  if (shapes.size() > kFewShapes) shapes = ShapesOf(problem_, HarmonyGroups::kAlike);
  std::vector<HarmonyChoice> choices;
  for (const ScheduleShape& shape : shapes) {
    for (StagePartition& partition : CutsFor(shape)) {
      choices.push_back({.shape = shape, .partition = std::move(partition)});
    }
  }
  return choices;
}

std::vector<HarmonyChoice> HarmonyShapes::WithLargerGroup(const HarmonyChoice& choice) {
  const ScheduleOptions& chosen = choice.shape.options;
  std::vector<HarmonyChoice> choices;
  for (const ScheduleShape& shape : ShapesWith(choice.shape, HarmonyGroups::kApart)) {
    const int forward = shape.options.microbatch_group - chosen.microbatch_group;
    const int backward = shape.options.backward_group - chosen.backward_group;
    if ((forward <= 0 || backward != 0) && (backward <= 0 || forward != 0)) continue;
    choices.push_back({.shape = shape, .partition = choice.partition});
    const auto balanced = cutter_.InBalance(CutShapeOf(shape), HarmonyCopies::kHidden);
    if (!balanced || *balanced == choice.partition) continue;
    choices.push_back({.shape = shape, .partition = *balanced});
  }
  return choices;
}

std::vector<StagePartition> HarmonyShapes::CutsFor(const ScheduleShape& shape) {
  const auto [smaller, larger] =
      std::minmax({shape.options.forward_pack, shape.options.backward_pack});
  const int stages = shape.workers * shape.chunks;
  const HarmonyCutShape cut = CutShapeOf(shape);
  std::vector<StagePartition> cuts;
  const auto add = [&](std::optional<StagePartition> more) {
    if (!more || std::find(cuts.begin(), cuts.end(), *more) != cuts.end()) return;
    cuts.push_back(*std::move(more));
  };
  if (larger % smaller == 0) {
    add(cutter_.ByTime(stages));
    add(cutter_.ByBytes(stages));
  }
  add(cutter_.InBalance(cut, HarmonyCopies::kHidden));
  if (larger == smaller) add(cutter_.InBalance(cut, HarmonyCopies::kExposed));
  return cuts;
}

}  // namespace siphon
