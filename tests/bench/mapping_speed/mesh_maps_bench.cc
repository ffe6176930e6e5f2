// How much processor time it takes to find the map of 16 stages on 16 devices that random links
// join, no two of them alike, with the shortest simulated step, and how far that is from the least
// step any map could have: for the drafts of GPT of 46 blocks that swap to one kind of place, with
// two thirds of the memory that its fullest worker needs, and to lenders with nine tenths of it.
// Fails when a search takes five seconds, when a bound is above what was found, or when a draft is
// slower than on the map it came from.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/drafts/maps/map_draft.h"
#include "planner/drafts/search_effort.h"
#include "planner/lower_schedule.h"
#include "planner/performance/device_spec.h"
#include "planner/performance/profile_from_first_principles.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"
#include "tests/bench/machine_name.h"
#include "tests/planner/mapping/mapping_testing.h"

namespace siphon {
namespace {

constexpr int kDevices = 16;
constexpr int kMostWires = 2;
constexpr int kMeshes = 3;
constexpr double kMostSeconds = 5;

template <typename T>
T ValueOf(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << "\n";
  std::exit(1);
}

// Two devices behind each uplink, of a DGX-1's rate and of fewer, as drawn.
Topology MeshWithHost(uint32_t seed) {
  std::mt19937 random(seed);
  Topology topology = RandomMesh(kDevices, kMostWires, kDgx1WireRate, random);
  for (TopologyDevice& device : topology.devices) device.memory = Bytes(int64_t{32} << 30);
  topology.host_memory = Bytes(1'536'000'000'000);
  constexpr BytesPerSecond kHost{11'700'000'000};
  topology = WithHost(std::move(topology), 2, {.to_host = kHost, .from_host = kHost});
  for (PcieSwitch& uplink : topology.switches) {
    uplink.to_host = uplink.from_host =
        BytesPerSecond(kHost.value - int64_t{1 << 20} * (random() % 4'096));
  }
  return topology;
}

// With so much of what its fullest worker needs.
PlanningProblem ProblemOn(Topology topology, const std::string& schedule, int64_t percent) {
  PlanningProblem problem{.topology = std::move(topology)};
  const ModelSpec model = ValueOf(BuildModelSpec({.kind = "gpt",
                                                  .layers = 46,
                                                  .hidden = 4096,
                                                  .heads = 32,
                                                  .vocabulary = 50257,
                                                  .sequence_length = 1024,
                                                  .tie_embeddings = false}));
  problem.profile = ValueOf(ProfileFromFirstPrinciples(model, ValueOf(FindDeviceSpec("V100-32")),
                                                       /*microbatch=*/2, Precision::kFloat16));
  Schedule built = ValueOf(BuildSchedule(schedule, {.workers = kDevices,
                                                    .chunks = FindSchedule(schedule)->chunks,
                                                    .microbatches = 2 * kDevices}));
  problem.schedule = AppendOptimizerStep(ValueOf(InsertCommunication(std::move(built))), {});
  problem.partition = ValueOf(PartitionModel(model, StageCount(problem.schedule), "balanced"));
  problem.granule = Bytes(int64_t{2} << 20);
  const PlannedStep kept = ValueOf(PlanKeep(problem));
  const std::vector<Bytes> peaks = TotalPeaks(kept.simulated);
  const Bytes fullest = *std::max_element(peaks.begin(), peaks.end());
  problem.capacity.assign(kDevices, Bytes(fullest.value / 100 * percent));
  return problem;
}

bool Measure(const std::string& what, const PlanningProblem& problem, MakeDraft make) {
  DraftSimulator simulator(problem);
  const absl::StatusOr<SimulatedDraft> draft = make(simulator);
  if (!draft.ok() || !Fits(*draft)) {
    std::cout << what << ": does not fit\n";
    return true;
  }
  const std::clock_t begin = std::clock();
  const MappedDraft mapped = ValueOf(MapByStepTime(simulator, *draft, MapsFor(problem)));
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const MapProof proof = ProofOf(MappingScore::kStepTime, *mapped.found);
  std::cout << absl::StreamFormat(
      "%-32s %.2f s %6d parts %4d maps  first %s, found %s, least %s%s\n", what, seconds,
      proof.bounded, proof.evaluated, FormatNanos(draft->score.step), FormatNanos(proof.time),
      FormatNanos(proof.least_time),
      proof.proven ? ", proven"
                   : absl::StrFormat(", at most %.2f %% above", 100 * GapOf(proof).value_or(-1)));
  return seconds < kMostSeconds && mapped.found->bound <= mapped.found->cost &&
         mapped.draft.score <= draft->score;
}

int Main() {
  std::cout << MachineName() << ", processor time\n";
  bool kept = true;
  for (uint32_t seed = 1; seed <= kMeshes; ++seed) {
    for (const std::string schedule : {"1f1b", "gpipe"}) {
      const Topology mesh = MeshWithHost(seed);
      const std::string name = absl::StrCat("mesh ", seed, " ", schedule, ", ");
      kept &= Measure(name + "d2d_swap", ProblemOn(mesh, schedule, 90), DraftPeerSwap);
      kept &= Measure(name + "host_swap", ProblemOn(mesh, schedule, 67), DraftHostSwap);
    }
  }
  std::cout << absl::StreamFormat("each within %.0f s, bounds no more than found: %s\n",
                                  kMostSeconds, kept ? "kept" : "NOT KEPT");
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace siphon

int main() { return siphon::Main(); }
