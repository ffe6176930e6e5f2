#include "planner/strategies/harmony_shapes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "planner/strategies/harmony_cuts.h"

namespace siphon {
namespace {

// With more stages a worker than this, not every number of them is tried.
constexpr int kFewChunks = 4;
constexpr int kFewLayers = 4;

enum class HarmonyPacks { kAll, kAlike };  // forward and backward

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

std::vector<StagePartition> CutsFor(const ScheduleShape& shape, HarmonyCutter& cutter) {
  const ScheduleOptions& options = shape.options;
  const auto [smaller, larger] = std::minmax({options.forward_pack, options.backward_pack});
  const int block = std::lcm(smaller, larger);
  const int stages = shape.workers * shape.chunks;
  const HarmonyCutShape cut{.rounds = shape.chunks / block,
                            .block = block,
                            .visits = shape.microbatches / options.microbatch_group};
  std::vector<StagePartition> cuts;
  const auto add = [&](std::optional<StagePartition> more) {
    if (!more || std::find(cuts.begin(), cuts.end(), *more) != cuts.end()) return;
    cuts.push_back(*std::move(more));
  };
  if (larger % smaller == 0) {
    add(cutter.ByTime(stages));
    add(cutter.ByBytes(stages));
  }
  add(cutter.InBalance(cut, HarmonyCopies::kHidden));
  if (larger == smaller) add(cutter.InBalance(cut, HarmonyCopies::kExposed));
  return cuts;
}

}  // namespace

std::vector<HarmonyChoice> HarmonyShapes(const PlanningProblem& problem) {
  const int workers = WorkerCount(problem.schedule);
  const int microbatches = problem.schedule.microbatches;
  const auto layers = static_cast<int>(problem.profile.layers.size());
  HarmonyCutter cutter(problem.profile, WorkersOf(problem));
  std::vector<HarmonyChoice> shapes;
  for (const auto& [chunks, packs] : ChunksFor(layers, workers)) {
    for (const int forward_pack : DivisorsOf(chunks)) {
      for (const int backward_pack : DivisorsOf(chunks)) {
        if (packs == HarmonyPacks::kAlike && forward_pack != backward_pack) continue;
        for (const int group : DivisorsOf(microbatches)) {
          HarmonyChoice choice{.shape = {.workers = workers,
                                         .chunks = chunks,
                                         .microbatches = microbatches,
                                         .options = {.forward_pack = forward_pack,
                                                     .backward_pack = backward_pack,
                                                     .microbatch_group = group}}};
          for (StagePartition& partition : CutsFor(choice.shape, cutter)) {
            choice.partition = std::move(partition);
            shapes.push_back(choice);
          }
        }
      }
    }
  }
  return shapes;
}

}  // namespace siphon
