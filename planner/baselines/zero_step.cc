#include "planner/baselines/zero_step.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "planner/baselines/server_rates.h"
#include "planner/status.h"

namespace siphon {
namespace {

enum class WeightPlace { kDevices, kHost };
// kHostFirst: on drives what host memory has no room for, the last layers'.
enum class StatePlace { kHostFirst, kDrives };

struct ZeroPlaces {
  WeightPlace weights = WeightPlace::kDevices;
  StatePlace state = StatePlace::kHostFirst;
};

// Room for two of something, used in turn.
class TwoBuffers {
 public:
  // From when on there is room for another one.
  Nanos free() const { return older_; }
  void Take(Nanos until) { older_ = std::exchange(newer_, until); }

 private:
  Nanos older_;
  Nanos newer_;
};

class ZeroSimulation {
 public:
  ZeroSimulation(const BaselineProblem& problem, const ServerRates& rates, const ZeroPlaces& places,
                 bool recomputes)
      : problem_(problem),
        rates_(rates),
        places_(places),
        recomputes_(recomputes),
        on_drives_(LayersOnDrives()) {}

  BaselineStep Run() {
    for (int microbatch = 0; microbatch < problem_.microbatches; ++microbatch) {
      Pass(/*backward=*/false);
      Pass(/*backward=*/true);
    }
    BaselineStep step = Memory();
    step.step_time = Optimizer(std::max(compute_.end(), to_host_.end()));
    step.recomputes = recomputes_;
    const ProfileTotals totals = TotalsOf(problem_.profile);
    const Nanos one = totals.forward * (recomputes_ ? 2 : 1) + totals.backward;
    step.computing = one * problem_.microbatches;
    step.to_host = totals.gradients * problem_.microbatches;
    const bool fetches = places_.weights == WeightPlace::kHost;
    step.from_host = totals.parameters * (fetches ? 2 * int64_t{problem_.microbatches} : 1);
    return step;
  }

 private:
  Bytes Own(Bytes bytes) const {
    return Bytes((bytes.value + rates_.devices - 1) / rates_.devices);
  }
  // Time in which each device sends, and gets, all parts but its own.
  Nanos Collective(Bytes bytes) const {
    return TimeFor(bytes - Bytes(bytes.value / rates_.devices), rates_.collective);
  }

  // Weights of a layer on all devices; from when on.
  Nanos Gather(const LayerProfile& layer) {
    Nanos ready = weights_.free();
    if (places_.weights == WeightPlace::kHost) {
      ready = from_host_.Run(ready, TimeFor(Own(layer.parameters), rates_.from_host_both));
    }
    return fabric_.Run(ready, Collective(layer.parameters));
  }

  void Pass(bool backward) {
    std::vector<const LayerProfile*> layers;
    for (const LayerProfile& layer : problem_.profile.layers) layers.push_back(&layer);
    if (backward) std::reverse(layers.begin(), layers.end());
    Nanos gathered = Gather(*layers.front());
    for (size_t index = 0; index < layers.size(); ++index) {
      const LayerProfile& layer = *layers[index];
      Nanos time = layer.forward;
      if (backward) time = WholeBackward(layer) + (recomputes_ ? layer.forward : Nanos(0));
      const Nanos ready = backward ? std::max(gathered, gradients_.free()) : gathered;
      const Nanos end = compute_.Run(ready, time);
      weights_.Take(end);
      if (index + 1 < layers.size()) gathered = Gather(*layers[index + 1]);
      if (!backward) continue;
      const Nanos summed = fabric_.Run(end, Collective(layer.gradients));
      gradients_.Take(to_host_.Run(summed, TimeFor(Own(layer.gradients), rates_.to_host_both)));
    }
  }

  // [layer]: whether its optimizer state is there.
  std::vector<bool> LayersOnDrives() const {
    const size_t layers = problem_.profile.layers.size();
    if (places_.state == StatePlace::kDrives) return std::vector<bool>(layers, true);
    std::vector<bool> on_drives(layers, false);
    const Bytes host = problem_.topology.host_memory;
    if (problem_.topology.drives.empty() || host == Bytes(0)) return on_drives;
    Bytes taken = HeldWithoutState();
    for (size_t layer = 0; layer < layers; ++layer) {
      const Bytes state = problem_.profile.layers[layer].optimizer_state;
      on_drives[layer] = taken + state > host;
      if (!on_drives[layer]) taken += state;
    }
    return on_drives;
  }

  // By the host.
  Bytes HeldWithoutState() const {
    const ProfileTotals totals = TotalsOf(problem_.profile);
    const bool weights = places_.weights == WeightPlace::kHost;
    return totals.gradients + (weights ? totals.parameters : Bytes(0));
  }

  // The host's part of a layer, by its share of the parameters.
  Nanos HostStep(const LayerProfile& layer, Bytes all) const {
    if (all == Bytes(0)) return Nanos(0);
    const absl::int128 scaled = absl::int128(problem_.host_step.value) * layer.parameters.value;
    return Nanos(static_cast<int64_t>((scaled + all.value - 1) / all.value));
  }

  // Returns when it ends.
  Nanos Optimizer(Nanos begin) {
    const Bytes all = TotalsOf(problem_.profile).parameters;
    BaselineLane read;
    BaselineLane host;
    BaselineLane write;
    BaselineLane back;
    for (size_t index = 0; index < on_drives_.size(); ++index) {
      const LayerProfile& layer = problem_.profile.layers[index];
      Nanos there = begin;
      if (on_drives_[index]) {
        there = read.Run(begin, TimeFor(layer.optimizer_state, rates_.drives_read));
      }
      const Nanos stepped = host.Run(there, HostStep(layer, all));
      if (on_drives_[index]) {
        write.Run(stepped, TimeFor(layer.optimizer_state, rates_.drives_write));
      }
      if (places_.weights == WeightPlace::kHost) continue;
      back.Run(stepped, TimeFor(Own(layer.parameters), rates_.from_host));
    }
    return std::max({host.end(), write.end(), back.end()});
  }

  BaselineStep Memory() const {
    const ProfileTotals totals = TotalsOf(problem_.profile);
    const bool on_devices = places_.weights == WeightPlace::kDevices;
    BaselineStep step;
    step.device = on_devices ? Own(totals.parameters) : Bytes(0);
    step.device += totals.largest_parameters * 2 + totals.largest_gradients * 2;
    step.device += recomputes_ ? totals.boundaries + totals.largest_saved : totals.saved;
    step.device += totals.largest_workspace;
    step.host = HeldWithoutState();
    for (size_t layer = 0; layer < on_drives_.size(); ++layer) {
      const Bytes state = problem_.profile.layers[layer].optimizer_state;
      (on_drives_[layer] ? step.drives : step.host) += state;
    }
    return step;
  }

  const BaselineProblem& problem_;
  const ServerRates& rates_;
  const ZeroPlaces places_;
  const bool recomputes_;
  const std::vector<bool> on_drives_;
  BaselineLane compute_;
  BaselineLane fabric_;
  BaselineLane to_host_;
  BaselineLane from_host_;
  TwoBuffers weights_;
  TwoBuffers gradients_;
};

absl::StatusOr<BaselineStep> ZeroStep(const BaselineProblem& problem, const ZeroPlaces& places) {
  SIPHON_RETURN_IF_ERROR(CheckBaselineProblem(problem));
  SIPHON_ASSIGN_OR_RETURN(const ServerRates rates, RatesOf(problem.topology));
  const BaselineStep kept = ZeroSimulation(problem, rates, places, /*recomputes=*/false).Run();
  if (CheckRoom(problem, kept).ok()) return kept;
  const BaselineStep step = ZeroSimulation(problem, rates, places, /*recomputes=*/true).Run();
  SIPHON_RETURN_IF_ERROR(CheckRoom(problem, step));
  return step;
}

}  // namespace

absl::StatusOr<BaselineStep> ZeroOffloadStep(const BaselineProblem& problem) {
  BaselineProblem without_drives = problem;
  without_drives.topology.drives.clear();
  return ZeroStep(without_drives, {.weights = WeightPlace::kDevices});
}

absl::StatusOr<BaselineStep> ZeroInfinityStep(const BaselineProblem& problem) {
  return ZeroStep(problem, {.weights = WeightPlace::kHost});
}

absl::StatusOr<BaselineStep> ZeroInfinityNvmeStep(const BaselineProblem& problem) {
  return ZeroStep(problem, {.weights = WeightPlace::kHost, .state = StatePlace::kDrives});
}

}  // namespace siphon
