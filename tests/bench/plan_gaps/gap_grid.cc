#include "tests/bench/plan_gaps/gap_grid.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/lower_schedule.h"
#include "planner/model_spec.h"
#include "planner/performance/profile_from_first_principles.h"
#include "planner/status.h"
#include "tests/planner/published/mpress_machines.h"

namespace siphon {
namespace {

constexpr int kMicrobatchesAWorker = 2;
constexpr int kPercents[] = {95, 75, 50, 25, 5};
constexpr const char* kSchedules[] = {"gpipe", "1f1b", "interleaved_1f1b", "zb_h1"};
// Of all layers on the host; ASSUMED: its memory moves 12 + 2 + 2 bytes a parameter at 100 GB/s.
constexpr BytesPerSecond kHostMemoryRate{100'000'000'000};

// The same on every machine, as std::uniform_int_distribution is not.
class GapDice {
 public:
  explicit GapDice(uint32_t seed) : engine_(seed) {}
  int64_t Roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint32_t>(high - low + 1));
  }

 private:
  std::mt19937 engine_;
};

struct GapServer {
  std::string name;
  Topology topology;
};

std::vector<GapServer> Servers() {
  std::vector<GapServer> servers = {{"dgx1", Dgx1()}, {"dgx_a100", A100Server()}};
  constexpr BytesPerSecond kPcie4{26'000'000'000};
  Topology pcie{.name = "PCIe only", .device_kind = "A100"};
  pcie.devices.resize(4, {.memory = Bytes(int64_t{40} << 30)});
  pcie.host_memory = Bytes(512'000'000'000);
  servers.push_back({"pcie", WithHost(std::move(pcie), 2,
                                      {.to_host = kPcie4,
                                       .from_host = kPcie4,
                                       .to_host_both = BytesPerSecond(19'000'000'000),
                                       .from_host_both = BytesPerSecond(19'000'000'000),
                                       .latency = Nanos(9'000)})});
  // A chain with one, two and three wires, and a chord; three devices share an uplink.
  constexpr int kPairs[][3] = {{0, 1, 2}, {1, 2, 1}, {2, 3, 3}, {3, 4, 1}, {4, 5, 2}, {0, 4, 1}};
  constexpr BytesPerSecond kWire{24'200'000'000};
  Topology uneven{.name = "unequal links", .device_kind = "V100-32"};
  uneven.devices.resize(6, {.memory = Bytes(int64_t{32} << 30)});
  for (const auto& [a, b, wires] : kPairs) {
    uneven.links.push_back({DeviceId(a), DeviceId(b), kWire * wires, Nanos(2'000), wires});
    uneven.links.push_back({DeviceId(b), DeviceId(a), kWire * wires, Nanos(2'000), wires});
  }
  uneven.host_memory = Bytes(512'000'000'000);
  constexpr BytesPerSecond kPcie3{11'700'000'000};
  servers.push_back(
      {"uneven", WithHost(std::move(uneven), 3,
                          {.to_host = kPcie3, .from_host = kPcie3, .latency = Nanos(9'000)})});
  return servers;
}

struct GapModel {
  std::string name;
  ModelOptions options;
  int64_t microbatch = 1;
  Precision precision = Precision::kFloat16;
};

std::vector<GapModel> GapModels() {
  const ModelOptions gpt{.kind = "gpt",
                         .layers = 30,
                         .hidden = 4096,
                         .heads = 32,
                         .vocabulary = 50257,
                         .sequence_length = 1024,
                         .tie_embeddings = false,
                         .flash_attention = false};
  ModelOptions bert = gpt;
  bert.kind = "bert";
  bert.hidden = 1024;
  bert.heads = 16;
  bert.vocabulary = 30522;
  bert.sequence_length = 512;
  const ModelOptions mlp{.kind = "mlp", .layers = 32, .hidden = 8192, .vocabulary = 1000};
  return {{"gpt", gpt, 2}, {"bert", bert, 12, Precision::kFloat32}, {"mlp", mlp, 1024}};
}

// 32 layers that have nothing in common but their order of size.
ModelProfile UnevenProfile() {
  GapDice dice(7);
  ModelProfile profile;
  for (int layer = 0; layer < 32; ++layer) {
    const Nanos forward(dice.Roll(2'000'000, 20'000'000));
    const Bytes parameters(dice.Roll(10'000'000, 400'000'000));
    profile.layers.push_back({.name = absl::StrCat("layer", layer),
                              .forward = forward,
                              .input_backward = forward,
                              .weight_backward = forward,
                              .optimizer = Nanos(parameters.value / 50),
                              .parameters = parameters,
                              .gradients = parameters,
                              .optimizer_state = parameters * 4,
                              .boundary = Bytes(dice.Roll(4'000'000, 16'000'000)),
                              .saved = {{"saved", Bytes(dice.Roll(50'000'000, 600'000'000))}}});
  }
  return profile;
}

absl::StatusOr<Schedule> LoweredStep(absl::string_view name, int workers, int microbatches) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule,
                          BuildSchedule(name, {.workers = workers,
                                               .chunks = FindSchedule(name)->chunks,
                                               .microbatches = microbatches}));
  SIPHON_ASSIGN_OR_RETURN(schedule, InsertCommunication(std::move(schedule)));
  return AppendOptimizerStep(std::move(schedule), {});
}

// [worker] of the draft, nothing limited.
absl::StatusOr<std::vector<Bytes>> PeaksOf(const PlanningProblem& problem, DraftPlan draft) {
  DraftSimulator simulator(problem);
  SIPHON_ASSIGN_OR_RETURN(const SimulatedDraft run, simulator.Run(std::move(draft)));
  std::vector<Bytes> peaks;
  for (const MemoryByKind& peak : run.simulated.peak) peaks.push_back(Total(peak));
  return peaks;
}

// See GapGrid.
absl::Status LimitMemory(PlanningProblem& problem, int64_t percent) {
  problem.capacity.clear();
  DraftPlan draft = KeepingDraft(problem);
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> kept, PeaksOf(problem, draft));
  for (StageDraft& stage : draft.stages) {
    for (Placement& layer : stage.activations) layer = Placement::kRecompute;
    for (Placement& layer : stage.optimizer_state) layer = Placement::kHostSwap;
    stage.timing = {.forwards_to_leave = 0, .actions_to_come_back = 0, .groups_ahead = 0};
  }
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> least, PeaksOf(problem, draft));
  const int64_t high = std::max_element(kept.begin(), kept.end())->value;
  const int64_t low = std::max_element(least.begin(), least.end())->value;
  problem.capacity.assign(kept.size(), Bytes(low + (high - low) / 100 * percent));
  return absl::OkStatus();
}

// One place of the grid.
struct GapCell {
  const GapServer* server = nullptr;
  const char* schedule = nullptr;
  const GapModel* model = nullptr;  // none: the synthetic one
  int percent = 0;
};

std::vector<GapCell> CellsOf(const std::vector<GapServer>& servers,
                             const std::vector<GapModel>& models) {
  std::vector<GapCell> cells;
  for (const GapServer& server : servers) {
    for (const char* schedule : kSchedules) {
      for (size_t model = 0; model <= models.size(); ++model) {
        for (const int percent : kPercents) {
          cells.push_back(
              {&server, schedule, model < models.size() ? &models[model] : nullptr, percent});
        }
      }
    }
  }
  return cells;
}

absl::Status SetModel(const GapModel& named, const GapServer& server, PlanningProblem& problem) {
  SIPHON_ASSIGN_OR_RETURN(const DeviceSpec device, FindDeviceSpec(server.topology.device_kind));
  SIPHON_ASSIGN_OR_RETURN(ModelSpec model, BuildModelSpec(named.options));
  SIPHON_ASSIGN_OR_RETURN(problem.profile, ProfileFromFirstPrinciples(
                                               model, device, named.microbatch, named.precision));
  SIPHON_ASSIGN_OR_RETURN(problem.partition,
                          PartitionModel(model, StageCount(problem.schedule), "balanced"));
  return absl::OkStatus();
}

void SetUnevenModel(PlanningProblem& problem) {
  problem.profile = UnevenProfile();
  const auto layers = static_cast<int>(problem.profile.layers.size());
  const int stages = StageCount(problem.schedule);
  for (int stage = 0; stage < stages; ++stage) {
    problem.partition.stages.push_back({stage * layers / stages, (stage + 1) * layers / stages});
  }
}

absl::StatusOr<GapInstance> InstanceOf(const GapCell& cell) {
  PlanningProblem problem{.topology = cell.server->topology, .granule = Bytes(2 << 20)};
  SIPHON_ASSIGN_OR_RETURN(problem.schedule,
                          LoweredStep(cell.schedule, DeviceCount(problem.topology),
                                      kMicrobatchesAWorker * DeviceCount(problem.topology)));
  if (cell.model != nullptr) {
    SIPHON_RETURN_IF_ERROR(SetModel(*cell.model, *cell.server, problem));
  } else {
    SetUnevenModel(problem);
  }
  Bytes state;
  for (const LayerProfile& layer : problem.profile.layers) {
    state += layer.optimizer_state + layer.parameters + layer.gradients;
  }
  problem.host_step = Nanos(static_cast<int64_t>(1e9 * static_cast<double>(state.value) /
                                                 static_cast<double>(kHostMemoryRate.value)));
  SIPHON_RETURN_IF_ERROR(LimitMemory(problem, cell.percent));
  const std::string model = cell.model != nullptr ? cell.model->name : "synthetic";
  return GapInstance{
      absl::StrCat(model, " ", cell.server->name, " ", cell.schedule, " ", cell.percent, "%"),
      std::move(problem)};
}

}  // namespace

absl::StatusOr<std::vector<GapInstance>> GapGrid(int instances, uint32_t seed) {
  const std::vector<GapServer> servers = Servers();
  const std::vector<GapModel> models = GapModels();
  std::vector<GapCell> cells = CellsOf(servers, models);
  const auto wanted = std::min(cells.size(), static_cast<size_t>(std::max(0, instances)));
  GapDice dice(seed);
  for (size_t place = 0; wanted < cells.size() && place < wanted; ++place) {
    std::swap(
        cells[place],
        cells[dice.Roll(static_cast<int64_t>(place), static_cast<int64_t>(cells.size()) - 1)]);
  }
  std::vector<GapInstance> grid;
  for (size_t place = 0; place < wanted; ++place) {
    SIPHON_ASSIGN_OR_RETURN(GapInstance instance, InstanceOf(cells[place]));
    grid.push_back(std::move(instance));
  }
  return grid;
}

int GapGridSize() { return static_cast<int>(CellsOf(Servers(), GapModels()).size()); }

absl::StatusOr<GapInstance> SmallGapInstance(uint32_t seed) {
  GapDice dice(seed);
  const auto workers = static_cast<int>(dice.Roll(2, 3));
  const char* name = kSchedules[dice.Roll(0, 3)];
  PlanningProblem problem{.granule = Bytes(1)};
  SIPHON_ASSIGN_OR_RETURN(problem.schedule,
                          LoweredStep(name, workers, kMicrobatchesAWorker * workers));
  const Nanos forward(dice.Roll(50'000, 200'000));
  const LayerProfile layer{.forward = forward,
                           .input_backward = forward,
                           .weight_backward = forward,
                           .optimizer = Nanos(20'000),
                           .parameters = Bytes(20'000),
                           .gradients = Bytes(20'000),
                           .optimizer_state = Bytes(dice.Roll(0, 120'000)),
                           .boundary = Bytes(10'000),
                           .saved = {{"saved", Bytes(dice.Roll(50'000, 150'000))}}};
  const auto layers = static_cast<int>(dice.Roll(2, 4));
  for (int stage = 0; stage < StageCount(problem.schedule); ++stage) {
    problem.partition.stages.push_back({stage * layers, (stage + 1) * layers});
    problem.profile.layers.insert(problem.profile.layers.end(), layers, layer);
  }
  const auto rate = [&](int64_t low, int64_t high) {
    return BytesPerSecond(dice.Roll(low, high) * 100'000'000);
  };
  problem.topology = UniformTopology(workers, rate(5, 40), Nanos(500));
  for (TopologyLink& link : problem.topology.links) link.wires = 1;
  for (TopologyDevice& device : problem.topology.devices) device.memory = Bytes(int64_t{1} << 40);
  const BytesPerSecond host = rate(2, 20);
  problem.topology =
      WithHost(problem.topology, 2, {.to_host = host, .from_host = host, .latency = Nanos(1'000)});
  const int64_t percent = dice.Roll(10, 90);
  SIPHON_RETURN_IF_ERROR(LimitMemory(problem, percent));
  return GapInstance{absl::StrCat("small ", seed, " ", name, " ", percent, "%"), problem};
}

absl::StatusOr<GapInstance> TinyGapInstance(uint32_t seed) {
  GapDice dice(seed);
  // Two workers with state or more layers, or three workers without.
  const bool state = dice.Roll(0, 1) == 0;
  const int workers = !state && dice.Roll(0, 3) == 0 ? 3 : 2;
  const char* name = kSchedules[dice.Roll(0, 3)];
  const int microbatches =
      FindSchedule(name)->chunks > 1 ? workers : static_cast<int>(dice.Roll(2, 4));
  PlanningProblem problem{.granule = Bytes(1)};
  SIPHON_ASSIGN_OR_RETURN(problem.schedule, LoweredStep(name, workers, microbatches));
  const bool one = state || workers == 3 || StageCount(problem.schedule) > workers;
  for (int stage = 0; stage < StageCount(problem.schedule); ++stage) {
    const auto begin = static_cast<int>(problem.profile.layers.size());
    const int layers = one ? 1 : static_cast<int>(dice.Roll(1, 2));
    problem.partition.stages.push_back({begin, begin + layers});
    for (int layer = 0; layer < layers; ++layer) {
      const Nanos forward(dice.Roll(50'000, 200'000));
      problem.profile.layers.push_back(
          {.forward = forward,
           .input_backward = forward,
           .weight_backward = Nanos(dice.Roll(50'000, 200'000)),
           .optimizer = Nanos(20'000),
           .parameters = Bytes(20'000),
           .gradients = Bytes(20'000),
           .optimizer_state = Bytes(state ? dice.Roll(20'000, 120'000) : 0),
           .boundary = Bytes(10'000),
           .saved = {{"saved", Bytes(dice.Roll(50'000, 150'000))}}});
    }
  }
  if (state && dice.Roll(0, 1) == 0) problem.host_step = Nanos(dice.Roll(50'000, 400'000));
  const auto rate = [&](int64_t low, int64_t high) {
    return BytesPerSecond(dice.Roll(low, high) * 100'000'000);
  };
  problem.topology = UniformTopology(workers, rate(5, 40), Nanos(500));
  for (TopologyLink& link : problem.topology.links) link.wires = 1;
  for (TopologyDevice& device : problem.topology.devices) device.memory = Bytes(int64_t{1} << 40);
  const BytesPerSecond host = rate(2, 20);
  problem.topology =
      WithHost(problem.topology, 2, {.to_host = host, .from_host = host, .latency = Nanos(1'000)});
  const int64_t percent = dice.Roll(10, 90);
  SIPHON_RETURN_IF_ERROR(LimitMemory(problem, percent));
  return GapInstance{absl::StrCat("tiny ", seed, " ", name, " ", percent, "%"), problem};
}

}  // namespace siphon
