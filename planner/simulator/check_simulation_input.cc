#include "planner/simulator/check_simulation_input.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/simulator/check_planned_groups.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Times and bytes of a step are counted in 63 bits; this leaves room for sums of sums.
constexpr double kLargestSum = 0x1p60;
// At some hundred bytes a task.
constexpr double kMostTasks = 2e7;

absl::Status CheckSize(size_t size, size_t wanted, absl::string_view what) {
  if (size == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("there are ", size, " ", what, ", but the schedule needs ", wanted));
}

absl::Status CheckNotNegative(std::initializer_list<int64_t> values, absl::string_view what) {
  for (const int64_t value : values) {
    if (value < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a figure of ", what, " is ", value, "; 0 is the least"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStage(const SimulationInput& input, int stage) {
  const StageCost& cost = input.stages[stage];
  SIPHON_RETURN_IF_ERROR(CheckNotNegative(
      {cost.forward.value, cost.input_backward.value, cost.weight_backward.value, cost.step.value,
       cost.whole_backward.value, cost.parameters.value, cost.gradients.value,
       cost.optimizer_state.value, cost.shared_parameters.value, cost.shared_gradients.value,
       cost.stash.value, cost.kept_for_weights.value, cost.input.value, cost.output.value,
       cost.forward_workspace.value, cost.backward_workspace.value,
       cost.input_backward_workspace.value, cost.weight_backward_workspace.value},
      absl::StrCat("the cost of stage ", stage)));
  if (stage == 0 || input.stages[stage - 1].output == cost.input) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("stage ", stage - 1, " gives ", input.stages[stage - 1].output.value,
                   " bytes to stage ", stage, ", which takes ", cost.input.value));
}

absl::Status CheckShared(const SimulationInput& input, int stage) {
  const std::vector<LayerCost>& layers = input.layers[stage];
  for (int layer = 0; layer < static_cast<int>(layers.size()); ++layer) {
    const bool alone = layer == 0 && layers[layer].shared_before > Bytes(0);
    if (!alone && FreedByBackward(layers, layer) >= Bytes(0)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", layer, " of stage ", stage, " shares ",
                     layers[layer].shared_before.value, " bytes with the layer before it, ",
                     alone ? "which the stage does not have" : "more than both save"));
  }
  return absl::OkStatus();
}

absl::Status CheckLayers(const SimulationInput& input, int stage) {
  StageCost sum;
  Nanos whole;
  for (const LayerCost& layer : input.layers[stage]) {
    SIPHON_RETURN_IF_ERROR(CheckNotNegative(
        {layer.forward.value, layer.input_backward.value, layer.weight_backward.value,
         layer.whole_backward.value, layer.optimizer.value, layer.stash.value,
         layer.kept_for_weights.value, layer.shared_before.value, layer.recompute.value},
        absl::StrCat("a layer of stage ", stage)));
    sum.forward += layer.forward;
    sum.input_backward += layer.input_backward;
    sum.weight_backward += layer.weight_backward;
    whole += WholeBackward(layer);
    sum.stash += layer.stash;
    sum.kept_for_weights += layer.kept_for_weights;
  }
  const StageCost& cost = input.stages[stage];
  const bool same = sum.forward == cost.forward && sum.input_backward == cost.input_backward &&
                    sum.weight_backward == cost.weight_backward && whole == WholeBackward(cost) &&
                    sum.stash == cost.stash && sum.kept_for_weights == cost.kept_for_weights;
  if (same && !input.layers[stage].empty()) return CheckShared(input, stage);
  return absl::InvalidArgumentError(absl::StrCat(
      "the ", input.layers[stage].size(), " layers of stage ", stage,
      " do not add up to the cost of the stage: forward ", sum.forward.value, " of ",
      cost.forward.value, " ns, backward ", whole.value, " of ", WholeBackward(cost).value,
      " ns, activations ", sum.stash.value, " of ", cost.stash.value, " bytes"));
}

absl::Status CheckDevices(const SimulationInput& input, size_t workers) {
  SIPHON_RETURN_IF_ERROR(CheckTopology(input.topology));
  if (!input.device_of_worker.empty()) {
    SIPHON_RETURN_IF_ERROR(
        CheckSize(input.device_of_worker.size(), workers, "devices for the workers"));
  }
  if (input.topology.devices.empty()) return absl::OkStatus();
  std::vector<int> worker_of(input.topology.devices.size(), -1);
  for (size_t worker = 0; worker < workers; ++worker) {
    const int device = input.device_of_worker.empty() ? static_cast<int>(worker)
                                                      : input.device_of_worker[worker].value;
    if (device < 0 || device >= DeviceCount(input.topology)) {
      return absl::InvalidArgumentError(absl::StrCat("worker ", worker, " is on device ", device,
                                                     ", but the topology has ",
                                                     DeviceCount(input.topology), " devices"));
    }
    if (worker_of[device] >= 0) {
      return absl::InvalidArgumentError(absl::StrCat("workers ", worker_of[device], " and ", worker,
                                                     " are both on device ", device));
    }
    worker_of[device] = static_cast<int>(worker);
  }
  return absl::OkStatus();
}

// More than a core for each running worker, or less than a thousandth, is a mistake.
absl::Status CheckCores(const CoreSharing& cores) {
  for (size_t running = 1; running <= cores.size(); ++running) {
    const auto most = static_cast<int64_t>(1000 * running);
    if (cores[running - 1] >= 1 && cores[running - 1] <= most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("cores: ", running, " running workers get ", cores[running - 1],
                     " thousandths of a core together; write 1 to ", most));
  }
  return absl::OkStatus();
}

// The slowest that a copy alone can be; 1 byte a nanosecond where no rate is known.
double SlowestRate(const SimulationInput& input) {
  double slowest = 1e9;
  const auto consider = [&slowest](BytesPerSecond rate) {
    if (rate.value > 0) slowest = std::min(slowest, static_cast<double>(rate.value));
  };
  consider(input.transport.rate);
  consider(input.transport.host_rate);
  consider(input.transport.copy_rate);
  consider(input.transport.swap_rate);
  for (const TopologyLink& link : input.topology.links) consider(link.rate);
  for (const TopologyDevice& device : input.topology.devices) {
    consider(device.egress);
    consider(device.ingress);
  }
  for (const PcieSwitch& uplink : input.topology.switches) {
    for (const BytesPerSecond rate :
         {uplink.to_host, uplink.from_host, uplink.to_host_both, uplink.from_host_both}) {
      consider(rate);
    }
  }
  for (const NvmeDrive& drive : input.topology.drives) {
    consider(drive.read);
    consider(drive.write);
  }
  return slowest;
}

double SlowestLatency(const SimulationInput& input) {
  Nanos slowest = input.transport.latency;
  for (const TopologyLink& link : input.topology.links) slowest = std::max(slowest, link.latency);
  for (const PcieSwitch& uplink : input.topology.switches) {
    slowest = std::max(slowest, uplink.latency);
  }
  Nanos slowest_drive;
  for (const NvmeDrive& drive : input.topology.drives) {
    slowest_drive = std::max(slowest_drive, drive.latency);
  }
  slowest += slowest_drive;
  return static_cast<double>(slowest.value);
}

absl::Status CheckBelow(double figure, double limit, absl::string_view what) {
  if (figure <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: about %.2g; the simulator takes %.2g at most", what, figure, limit));
}

// What the sums over the whole step grow with.
struct StepSize {
  double actions = 0;
  double compute = 0;    // of these: go through layers and groups
  double of_groups = 0;  // of these: move one group of a microbatch's activations, or of a version
  double layers = 1;     // the most of a stage; also the next two
  double groups = 0;
  double stripes = 1;  // of a group
};

StepSize SizeOf(const SimulationInput& input) {
  StepSize size;
  for (const std::vector<Action>& program : input.schedule.programs) {
    for (const Action& action : program) {
      const bool group = action.group != kWholeStage;
      ++size.actions;
      if (IsCompute(action.kind) || (action.kind == ActionKind::kRecompute && !group)) {
        ++size.compute;
      }
      if (group && IsMemory(action.kind) && HasMicrobatch(action)) ++size.of_groups;
    }
  }
  for (double* count : {&size.actions, &size.compute, &size.of_groups}) {
    *count *= input.schedule.replicas;
  }
  for (const std::vector<LayerCost>& stage : input.layers) {
    size.layers = std::max(size.layers, static_cast<double>(stage.size()));
  }
  for (const StagePlan& stage : input.memory.stages) {
    size.groups = std::max(size.groups, static_cast<double>(stage.groups.size()));
    for (const auto& [group, choice] : stage.groups) {
      size.stripes = std::max(size.stripes, static_cast<double>(choice.stripes.size()));
    }
  }
  return size;
}

// The longest that an action can take by itself.
double LongestAction(const SimulationInput& input) {
  double longest = 0;
  const auto consider = [&longest](Nanos time) {
    longest = std::max(longest, static_cast<double>(time.value));
  };
  for (const StageCost& cost : input.stages) {
    for (const Nanos time : {cost.forward, cost.input_backward, cost.weight_backward,
                             cost.whole_backward, cost.step}) {
      consider(time);
    }
  }
  for (const Nanos step : input.host_step) consider(step);
  double recompute = 0;  // of all groups of a stage
  for (const StagePlan& stage : input.memory.stages) {
    double sum = 0;
    for (const auto& [group, choice] : stage.groups) {
      sum += static_cast<double>(group.recompute.value);
    }
    recompute = std::max(recompute, sum);
  }
  return longest + recompute;
}

double MostBytes(const SimulationInput& input) {
  double most = 0;
  const auto consider = [&most](Bytes size) {
    most = std::max(most, static_cast<double>(size.value));
  };
  for (const StageCost& cost : input.stages) {
    for (const Bytes size :
         {cost.parameters, cost.gradients, cost.optimizer_state, cost.shared_parameters,
          cost.shared_gradients, cost.stash, cost.kept_for_weights, cost.input, cost.output,
          cost.forward_workspace, cost.backward_workspace, cost.input_backward_workspace,
          cost.weight_backward_workspace}) {
      consider(size);
    }
  }
  for (const MemoryByKind& held : input.held) {
    for (const Bytes size : held.bytes) consider(size);
  }
  return most;
}

// Bounds of the sums over the whole step, before anything is added up in integers.
absl::Status CheckMagnitudes(const SimulationInput& input) {
  const StepSize size = SizeOf(input);
  // A stripe is a copy of its own, and each group may be waited for or computed again.
  const double tasks = size.compute * (1 + size.layers + 2 * size.groups) +
                       (size.actions - size.compute) * (1 + size.stripes);
  SIPHON_RETURN_IF_ERROR(CheckBelow(tasks, kMostTasks, "tasks in the step, layer by layer"));
  for (const MemoryByKind& held : input.held) {
    for (const Bytes bytes : held.bytes) {
      SIPHON_RETURN_IF_ERROR(CheckNotNegative({bytes.value}, "what is held"));
    }
  }
  // Each action takes each kind of bytes once or twice; all groups of a microbatch together move
  // what its compute actions save.
  const double takers = size.actions - size.of_groups + (size.of_groups > 0 ? size.compute : 0);
  const double sum_of_bytes = 16 * MostBytes(input) * (takers + 1);
  SIPHON_RETURN_IF_ERROR(CheckBelow(sum_of_bytes, kLargestSum, "bytes of all actions together"));
  const double latencies = SlowestLatency(input) * size.stripes;
  const double sum_of_nanos = 4 * (LongestAction(input) + latencies) * (size.actions + 1) +
                              sum_of_bytes * 1e9 / SlowestRate(input);
  return CheckBelow(sum_of_nanos, kLargestSum, "nanoseconds of all actions and copies together");
}

}  // namespace

absl::Status CheckSimulationInput(const SimulationInput& input) {
  const auto stages = static_cast<size_t>(StageCount(input.schedule));
  const size_t programs = input.schedule.programs.size();
  if (input.schedule.replicas < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schedule has ", input.schedule.replicas, " replicas; 1 is the least"));
  }
  SIPHON_RETURN_IF_ERROR(CheckSize(input.stages.size(), stages, "costs of stages"));
  if (!input.layers.empty()) {
    SIPHON_RETURN_IF_ERROR(CheckSize(input.layers.size(), stages, "lists of layers"));
  }
  if (!input.capacity.empty()) {
    SIPHON_RETURN_IF_ERROR(CheckSize(input.capacity.size(), programs, "capacities"));
  }
  if (!input.held.empty()) {
    SIPHON_RETURN_IF_ERROR(CheckSize(input.held.size(), programs, "books of what is held"));
  }
  for (int stage = 0; stage < StageCount(input.schedule); ++stage) {
    SIPHON_RETURN_IF_ERROR(CheckStage(input, stage));
    if (!input.layers.empty()) SIPHON_RETURN_IF_ERROR(CheckLayers(input, stage));
  }
  for (const Bytes capacity : input.capacity) {
    SIPHON_RETURN_IF_ERROR(CheckNotNegative({capacity.value}, "the capacities"));
  }
  const TransportCosts& transport = input.transport;
  SIPHON_RETURN_IF_ERROR(
      CheckNotNegative({transport.latency.value, transport.rate.value, transport.host_rate.value,
                        transport.copy_rate.value, transport.swap_rate.value, transport.room},
                       "the transport"));
  SIPHON_RETURN_IF_ERROR(CheckCores(input.cores));
  SIPHON_RETURN_IF_ERROR(CheckPlannedGroups(input));
  if (!input.host_step.empty()) {
    SIPHON_RETURN_IF_ERROR(CheckSize(input.host_step.size(), stages, "steps on the host"));
  }
  for (const Nanos step : input.host_step) {
    SIPHON_RETURN_IF_ERROR(CheckNotNegative({step.value}, "the steps on the host"));
  }
  SIPHON_RETURN_IF_ERROR(CheckMagnitudes(input));
  return CheckDevices(input, programs * static_cast<size_t>(input.schedule.replicas));
}

}  // namespace siphon
