#include "planner/published/mpress_section5.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/lower_schedule.h"
#include "planner/performance/device_spec.h"
#include "planner/stage_cost.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr double kNanosPerSecond = 1e9;
constexpr double kGigabyte = 1e9;
constexpr double kGibibyte = 1 << 30;  // what reasons have

MpressRow Gpt3Row() {
  return {.name = "GPT-3 175B",
          .schedule = "1f1b",
          .microbatch = 2,
          .precision = Precision::kFloat16,
          .layers = 96,
          .billion_parameters = 175};
}

ModelOptions Gpt3Shape() {
  return {.kind = "gpt",
          .layers = 96,
          .hidden = 12'288,
          .heads = 96,
          .vocabulary = 50'257,
          .sequence_length = 2'048,
          .dropout = 0.1,
          .flash_attention = false};
}

// Here the host is memory behind PCIe, without drives or processors of its own.
bool HasPlace(absl::string_view strategy) {
  return strategy != "nvme_swap" && strategy != "optimizer_offload";
}

// All times but the optimizer's, which memory limits.
void ComputeAtPeak(const DeviceSpec& device, ModelProfile& profile) {
  constexpr int kAllPercent = 100;
  for (LayerProfile& layer : profile.layers) {
    for (Nanos* time : {&layer.forward, &layer.input_backward, &layer.weight_backward,
                        &layer.whole_backward, &layer.recompute}) {
      *time = Nanos(time->value * device.half_percent / kAllPercent);
    }
  }
}

// The slowest stage's computation of one microbatch.
Nanos SlotOf(const PlanningProblem& problem) {
  Nanos slot;
  for (const StageCost& stage : StageCosts(problem.profile, problem.partition)) {
    slot = std::max(slot, stage.forward + WholeBackward(stage));
  }
  return slot;
}

HidingRate RateFor(const PlanningProblem& problem, const std::vector<Bytes>& demand) {
  const std::vector<int> live = PeakLiveActivations(problem.schedule);
  Bytes most;  // leaves with a microbatch, and comes back
  for (int stage = 0; stage < kMpressStages; ++stage) {
    const Bytes excess = std::max(Bytes(0), demand[stage] - problem.capacity[stage]);
    most = std::max(most, Bytes(excess.value / live[stage]));
  }
  const double rate = static_cast<double>(most.value) * kNanosPerSecond /
                      static_cast<double>(SlotOf(problem).value);
  return {.each_way = BytesPerSecond(static_cast<int64_t>(rate)),
          .together = BytesPerSecond(static_cast<int64_t>(2 * rate))};
}

double Gigabytes(int64_t bytes) { return static_cast<double>(bytes) / kGigabyte; }
double Gibibytes(Bytes bytes) { return static_cast<double>(bytes.value) / kGibibyte; }

void AddStep(std::string& text, const ProjectedStep& step) {
  absl::StrAppendFormat(
      &text,
      "Devices that compute %s: all swaps are hidden from %.0f GB/s on each way, %.0f GB/s both "
      "together\n",
      step.speed == ProjectedSpeed::kPeak ? "at their peak" : "at the share of it that kernels get",
      Gigabytes(step.hiding.each_way.value), Gigabytes(step.hiding.together.value));
  absl::StrAppendFormat(&text, "  as if all fitted   %7.1f s\n",
                        static_cast<double>(step.kept_step.value) / kNanosPerSecond);
  for (const MpressRun& run : step.runs) {
    if (!run.status.ok()) {
      absl::StrAppendFormat(&text, "  %-18s %s\n", run.strategy, ReasonOf(run));
      continue;
    }
    const double longer =
        static_cast<double>(run.step_time.value) / static_cast<double>(step.kept_step.value) - 1;
    absl::StrAppendFormat(
        &text, "  %-18s %7.1f s %+6.1f %%; GB recomputed %.0f, behind PCIe %.0f, D2D %.0f\n",
        run.strategy, static_cast<double>(run.step_time.value) / kNanosPerSecond, 100 * longer,
        Gigabytes(run.recomputed.bytes.value), Gigabytes(run.host.bytes.value),
        Gigabytes(run.peers.bytes.value));
  }
}

// `instance` under each strategy that has a place here.
absl::StatusOr<ProjectedStep> Project(const MpressInstance& instance, ProjectedSpeed speed,
                                      const std::vector<Bytes>& demand,
                                      const std::vector<MemoryStrategy>& strategies,
                                      MpressProgress say) {
  SIPHON_ASSIGN_OR_RETURN(const SimulatedStep kept, KeptStep(instance.problem));
  ProjectedStep step{
      .speed = speed, .kept_step = kept.step_time, .hiding = RateFor(instance.problem, demand)};
  for (const MemoryStrategy& strategy : strategies) {
    if (!HasPlace(strategy.name)) continue;
    say(absl::StrCat("Section V: ", instance.row.name, " under ", strategy.name));
    absl::StatusOr<MpressRun> run = RunInstance(instance, strategy);
    if (!run.ok()) return Annotate(run.status(), absl::StrCat("section V, ", strategy.name));
    step.runs.push_back(*std::move(run));
  }
  return step;
}

}  // namespace

Topology SuperchipTopology(Topology grace) {
  const int devices = DeviceCount(grace);
  const Bytes processor(grace.host_memory.value / devices);
  BytesPerSecond read;
  BytesPerSecond write;
  grace.host_memory = Bytes(0);
  for (const NvmeDrive& drive : grace.drives) {
    grace.host_memory += drive.capacity;
    read += drive.read;
    write += drive.write;
  }
  for (TopologyDevice& device : grace.devices) device.memory += processor;
  grace.drives.clear();
  grace.switches.clear();
  return WithHost(std::move(grace), 1,
                  {.to_host = BytesPerSecond(write.value / devices),
                   .from_host = BytesPerSecond(read.value / devices)});
}

absl::StatusOr<MpressProjection> RunMpressProjection(const Topology& grace,
                                                     const MpressTools& tools,
                                                     const std::vector<MemoryStrategy>& strategies,
                                                     MpressProgress say) {
  if (DeviceCount(grace) == 0) return absl::InvalidArgumentError("section V needs devices");
  const Topology superchips = SuperchipTopology(grace);
  SIPHON_ASSIGN_OR_RETURN(MpressInstance instance,
                          MakeShapedInstance(Gpt3Row(), Gpt3Shape(), superchips, tools));
  instance.problem.host_step = Nanos(0);  // nobody computes behind PCIe
  PlanningProblem& problem = instance.problem;
  SIPHON_ASSIGN_OR_RETURN(const SimulatedStep kept, KeptStep(problem));
  MpressProjection projection{.machine = grace.name,
                              .capacity = problem.capacity.front(),
                              .pcie = superchips.switches.front().to_host,
                              .demand = TotalPeaks(kept)};
  Nanos forward;
  Nanos backward;
  for (const LayerProfile& layer : problem.profile.layers) {
    forward += layer.forward;
    backward += WholeBackward(layer);
  }
  projection.recompute_share =
      static_cast<double>(forward.value) / static_cast<double>((forward * 2 + backward).value);
  SIPHON_ASSIGN_OR_RETURN(const DeviceSpec device, FindDeviceSpec(grace.device_kind));
  for (const ProjectedSpeed speed : {ProjectedSpeed::kAchieved, ProjectedSpeed::kPeak}) {
    if (speed == ProjectedSpeed::kPeak) ComputeAtPeak(device, problem.profile);
    SIPHON_ASSIGN_OR_RETURN(ProjectedStep step,
                            Project(instance, speed, projection.demand, strategies, say));
    projection.steps.push_back(std::move(step));
  }
  return projection;
}

std::string MpressProjectionText(const MpressProjection& ours) {
  const bool fits = *std::max_element(ours.demand.begin(), ours.demand.end()) <= ours.capacity;
  std::string text = absl::StrFormat(
      "MPress, section V: GPT-3 175B on %s, 8 stages, microbatch 2\n"
      "The superchip's two memories count as one, %.0f GB (%.0f GiB) a device; behind PCIe there "
      "is "
      "more, at %.0f GB/s a device and direction.\n"
      "Demand of the stages in GB (GiB): %s: %s; published: out of memory\n"
      "Recomputing every layer is %.0f %% of the computation; published: 25 %% of resources wasted "
      "without D2D swap\n"
      "Published: swaps over PCIe are hidden from 140 GB/s a GPU on, at 64 GB/s a step is 13 %% "
      "longer\n",
      ours.machine, Gigabytes(ours.capacity.value), Gibibytes(ours.capacity),
      Gigabytes(ours.pcie.value),
      absl::StrJoin(ours.demand, ", ",
                    [](std::string* out, Bytes bytes) {
                      absl::StrAppendFormat(out, "%.0f (%.0f)", Gigabytes(bytes.value),
                                            Gibibytes(bytes));
                    }),
      fits ? "fits" : "out of memory", 100 * ours.recompute_share);
  for (const ProjectedStep& step : ours.steps) AddStep(text, step);
  return text;
}

}  // namespace siphon
