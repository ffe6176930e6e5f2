#include "planner/bounds/facts/bound_facts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/numeric/int128.h"
#include "planner/stage_cost.h"
#include "planner/status.h"

namespace siphon {
namespace {

// What the longest paths between windows may take together, in visits of an action. Where there are
// more, later segments count the worker's own work only, which is shorter.
constexpr size_t kMostVisits = 50'000'000;

// Whether optimizer steps of the worker may be computed on the host.
bool StepsOnHost(const PlanningProblem& problem, const UplinkRates& uplink) {
  return problem.host_step > Nanos(0) && FastestOut(uplink).value > 0;
}

// A layer's optimizer step, on the worker's device or on the host.
struct LayerStep {
  int64_t device = 0;
  int64_t host = 0;
};

// The least time in which all layers have stepped, some on the host while the others do on the
// device; any part of a layer may go either way. Whole layers on the host first, those that take
// the device longest for what they take of the host, until both have as much to do.
Nanos LeastStep(std::vector<LayerStep> layers) {
  std::sort(layers.begin(), layers.end(), [](const LayerStep& a, const LayerStep& b) {
    return absl::int128(a.device) * b.host > absl::int128(b.device) * a.host;
  });
  absl::int128 device = 0;
  for (const LayerStep& layer : layers) device += layer.device;
  absl::int128 host = 0;
  for (const LayerStep& layer : layers) {
    if (host + layer.host > device - layer.device) {
      // A part of this one: host + part * layer.host = device - part * layer.device.
      return Nanos(static_cast<int64_t>(host + layer.host * (device - host) /
                                                   absl::int128(layer.host + layer.device)));
    }
    host += layer.host;
    device -= layer.device;
  }
  return Nanos(static_cast<int64_t>(host));
}

// `host`: of the whole stage.
std::vector<LayerStep> LayerSteps(const PlanningProblem& problem, size_t stage, Bytes state,
                                  Nanos host) {
  std::vector<LayerStep> steps;
  const StageRange& layers = problem.partition.stages[stage];
  for (int index = layers.begin; index < layers.end; ++index) {
    const LayerProfile& layer = problem.profile.layers[index];
    const absl::int128 part = absl::int128(host.value) * layer.optimizer_state.value;
    steps.push_back(
        {layer.optimizer.value, state == Bytes(0) ? 0 : static_cast<int64_t>(part / state.value)});
  }
  return steps;
}

// A step on the host takes nothing of the worker, but its part of the host's time until the end.
void AddSteps(const PlanningProblem& problem, const SwapLimits& limits, StepPaths::Costs& costs) {
  absl::int128 state = 0;
  for (const StageCost& cost : costs.stages) state += cost.optimizer_state.value;
  for (size_t stage = 0; stage < costs.stages.size(); ++stage) {
    const StageCost& cost = costs.stages[stage];
    const int worker = problem.schedule.worker_of_stage[stage].value;
    const bool host = StepsOnHost(problem, limits.uplink[worker]);
    costs.steps.push_back(host ? Nanos(0) : cost.step);
    costs.ends.push_back(cost.step);
    if (!host) continue;
    const absl::int128 part = absl::int128(problem.host_step.value) * cost.optimizer_state.value;
    const Nanos on_host(state == 0 ? 0 : static_cast<int64_t>(part / state));
    costs.ends.back() =
        std::min(cost.step, LeastStep(LayerSteps(problem, stage, cost.optimizer_state, on_host)));
  }
}

// The fewest bytes a byte of optimizer state, among the worker's stages, and the most, among their
// layers; any number where one has none of it.
HostStep HostStepOf(const PlanningProblem& problem, const std::vector<StageId>& stages,
                    const std::vector<StageCost>& costs) {
  HostStep step{.open = true, .parameters = 1, .gradients = 1};
  const auto part = [](Bytes bytes, Bytes state) {
    return bytes == Bytes(0) ? 0.0
                             : static_cast<double>(bytes.value) / static_cast<double>(state.value);
  };
  for (const StageId stage : stages) {
    const StageRange& layers = problem.partition.stages[stage.value];
    for (int index = layers.begin; index < layers.end; ++index) {
      const LayerProfile& layer = problem.profile.layers[index];
      step.most_parameters =
          std::max(step.most_parameters, part(layer.parameters, layer.optimizer_state));
      step.most_gradients =
          std::max(step.most_gradients, part(layer.gradients, layer.optimizer_state));
    }
    const StageCost& cost = costs[stage.value];
    if (cost.optimizer_state == Bytes(0)) continue;
    step.parameters = std::min(step.parameters, part(cost.parameters, cost.optimizer_state));
    step.gradients = std::min(step.gradients, part(cost.gradients, cost.optimizer_state));
  }
  return step;
}

// What holds for a worker in each replica: the best of all its replicas.
SwapLimits OverReplicas(SwapLimits limits, int workers) {
  for (size_t account = workers; account < limits.link_out.size(); ++account) {
    const size_t worker = account % workers;
    limits.link_out[worker] = std::max(limits.link_out[worker], limits.link_out[account]);
    limits.link_in[worker] = std::max(limits.link_in[worker], limits.link_in[account]);
    limits.uplink[worker] = Better(limits.uplink[worker], limits.uplink[account]);
    for (int other = 0; other < workers; ++other) {
      const auto& ways = limits.ways[account][account - worker + other];
      auto& all = limits.ways[worker][other];
      all.insert(all.end(), ways.begin(), ways.end());
    }
  }
  limits.link_out.resize(workers);
  limits.link_in.resize(workers);
  limits.uplink.resize(workers);
  return limits;
}

int FirstCompute(const std::vector<Action>& program) {
  const auto found = std::find_if(program.begin(), program.end(),
                                  [](const Action& action) { return IsCompute(action.kind); });
  return static_cast<int>(found - program.begin());
}

class SegmentMaker {
 public:
  SegmentMaker(const StepPaths& paths, const Schedule& schedule, size_t visits)
      : paths_(paths), schedule_(schedule), visits_(visits) {}

  WindowedWorker Make(int worker, const std::vector<MemoryWindow>& windows) {
    const std::vector<Action>& program = schedule_.programs[worker];
    const int first = FirstCompute(program);
    const int size = static_cast<int>(program.size());
    WindowedWorker made{.worker = worker, .head = paths_.Head({worker, first})};
    made.own_path =
        made.head + paths_.Work(worker, first, size - 1) + paths_.Tail({worker, size - 1});
    made.segments.push_back(Between(worker, first, windows.front().place));
    for (size_t index = 0; index < windows.size(); ++index) {
      const MemoryWindow& window = windows[index];
      const bool last = index + 1 == windows.size();
      Segment segment =
          last ? Segment{.least = paths_.Tail({worker, window.place})}
               : Between(worker, window.place, windows[index + 1].place, window.last_backward);
      if (last) {
        segment.least_with_recompute = paths_.Work(worker, window.place, window.last_backward) +
                                       paths_.Tail({worker, window.last_backward});
      }
      made.segments.push_back(segment);
    }
    made.step = Step(worker, windows.back());
    return made;
  }

 private:
  static constexpr int kNone = -1;

  Segment Between(int worker, int from, int to, int last_backward = kNone) {
    Segment segment{.least = paths_.Work(worker, from, to)};
    if (last_backward != kNone) segment.least_with_recompute = segment.least;
    if (visits_ < paths_.nodes()) return segment;
    visits_ -= paths_.nodes();
    const std::vector<Nanos> longest = paths_.PathsWithin(worker, from, to);
    segment.least = longest.front();
    if (last_backward != kNone) {
      segment.least_with_recompute =
          paths_.Work(worker, from, last_backward) + longest[last_backward - from];
    }
    return segment;
  }

  StepPart Step(int worker, const MemoryWindow& window) const {
    const StepPlaces places = StepPlacesOf(schedule_.programs[worker]);
    if (places.first_step == kNoPlace || places.last_compute < window.last_backward) return {};
    const Nanos last = paths_.Duration({worker, places.last_compute});
    const std::vector<Nanos> longest =
        paths_.PathsWithin(worker, window.place, places.last_compute);
    return {.open = true,
            .least = longest.front() + last,
            .least_with_recompute = paths_.Work(worker, window.place, window.last_backward) +
                                    longest[window.last_backward - window.place] + last,
            .head = paths_.Head({worker, places.last_compute}) + last};
  }

  const StepPaths& paths_;
  const Schedule& schedule_;
  size_t visits_;
};

}  // namespace

int64_t BoundFacts::Count(int worker, const MemoryWindow& window, const LayerKind& kind) const {
  return int64_t{window.waiting[PlaceOf(memory[worker], kind.stage)]} * kind.layers;
}

absl::StatusOr<BoundFacts> BoundFactsOf(const PlanningProblem& problem) {
  SwapLimits limits = OverReplicas(SwapLimitsOf(problem), WorkerCount(problem.schedule));
  StepPaths::Costs costs{.stages = StageCosts(problem.profile, problem.partition),
                         .transport = problem.transport,
                         .ways = limits.ways};
  AddSteps(problem, limits, costs);
  SIPHON_ASSIGN_OR_RETURN(StepPaths paths, StepPaths::Build(problem.schedule, costs));
  BoundFacts facts{.replicas = problem.schedule.replicas,
                   .limits = std::move(limits),
                   .paths = std::move(paths),
                   .memory = MemoryOfWorkers(problem)};
  for (size_t worker = 0; worker < facts.memory.size(); ++worker) {
    facts.host_steps.push_back(StepsOnHost(problem, facts.limits.uplink[worker])
                                   ? HostStepOf(problem, facts.memory[worker].stages, costs.stages)
                                   : HostStep{});
  }
  Bytes state;
  for (const WorkerMemory& memory : facts.memory) state += memory.optimizer_state;
  for (HostStep& step : facts.host_steps) {
    if (!step.open || state == Bytes(0)) continue;
    // Whoever is in which server: all hosts together.
    step.time = static_cast<double>(problem.host_step.value) / static_cast<double>(state.value) /
                ServerCount(problem.topology);
  }
  facts.joint = JointFactsOf(problem.schedule, facts.paths, facts.memory);
  facts.moments = FullMomentsOf(problem.schedule, facts.paths, facts.memory);
  for (const std::vector<Action>& program : problem.schedule.programs) {
    facts.updates_within |= std::any_of(program.begin(), program.end(), [](const Action& action) {
      return action.kind == ActionKind::kUpdate;
    });
  }
  SegmentMaker maker(facts.paths, problem.schedule, kMostVisits);
  for (int worker = 0; worker < WorkerCount(problem.schedule); ++worker) {
    const int size = static_cast<int>(problem.schedule.programs[worker].size());
    facts.work += facts.paths.Work(worker, 0, size) * problem.schedule.replicas;
    const std::vector<MemoryWindow>& windows = facts.memory[worker].windows;
    if (!windows.empty()) facts.windowed.push_back(maker.Make(worker, windows));
  }
  for (const int64_t together : problem.cores) {
    facts.most_together = std::max(facts.most_together, together);
  }
  return facts;
}

}  // namespace siphon
