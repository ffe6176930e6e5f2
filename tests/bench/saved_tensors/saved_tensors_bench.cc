// What it costs a pass that its saved tensors can leave: the hooks that see them, finding out which
// memory they share, and having that memory freed and taken again; beside the same pass that keeps
// them. Per saved tensor, nothing being copied. Ends with 1 where that is above the limit, with
// which 10,000 tensors a step take 1 % of a second.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/torch/layers.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/stage_partition.h"
#include "planner/status.h"
#include "tests/bench/machine_name.h"
#include "tests/support/tiny_models.h"
#include "tests/support/token_batches.h"

namespace siphon {
namespace {

constexpr double kMostNanosPerTensor = 1000;
constexpr int kBlocks = 16;
constexpr MicrobatchId kMicrobatch(0);

// Frees what each layer has saved, and takes it again, filled with zeros.
class Emptying final : public PassWatch {
 public:
  explicit Emptying(StageCompute& stage) : stage_(stage) {}
  absl::Status Enter(int) override { return absl::OkStatus(); }
  absl::Status Leave(int) override { return absl::OkStatus(); }
  absl::Status BeginRecompute(MicrobatchId, StageRange) override { return absl::OkStatus(); }
  void EndRecompute() override {}
  absl::Status Saved(MicrobatchId microbatch, StageRange layers) override {
    SIPHON_ASSIGN_OR_RETURN(const TensorSpans tensors, stage_.SavedTensors(microbatch, layers));
    tensors_ += static_cast<int64_t>(tensors.size());
    for (const absl::Span<std::byte> tensor : tensors) bytes_ += tensor.size();
    saved_.push_back(layers);
    return absl::OkStatus();
  }
  // Behind the forward.
  absl::Status FreeAll() {
    for (const StageRange& layers : std::exchange(saved_, {})) {
      SIPHON_RETURN_IF_ERROR(stage_.FreeSaved(kMicrobatch, layers));
    }
    return absl::OkStatus();
  }
  absl::Status Need(MicrobatchId microbatch, StageRange layers) override {
    SIPHON_ASSIGN_OR_RETURN(const TensorSpans tensors, stage_.RefillSaved(microbatch, layers));
    for (const absl::Span<std::byte> tensor : tensors) {
      if (!tensor.empty()) std::memset(tensor.data(), 0, tensor.size());
    }
    return absl::OkStatus();
  }
  int64_t tensors() const { return tensors_; }
  size_t bytes() const { return bytes_; }

 private:
  StageCompute& stage_;
  std::vector<StageRange> saved_;
  int64_t tensors_ = 0;
  size_t bytes_ = 0;
};

// One stage of a whole tiny gpt, forward and backward of one microbatch again and again.
class Passes {
 public:
  Passes() : model_(BuildModel(TinyGpt(kBlocks)).value()) {
    layers_ = static_cast<int>(model_.spec.layers.size());
    stage_ = MakeTorchStage(model_, {.stages = {{0, layers_}}}, StageId(0), /*seed=*/1,
                            {.name = "adamw"}, {})
                 .value();
    batches_ = MakeTokenBatches(model_.spec, {}, /*seed=*/1);
  }
  StageCompute& stage() { return *stage_; }
  // `emptying`: null keeps.
  void Run(Emptying* emptying) {
    absl::Status status = stage_->BeginStep(batches_.steps[0]);
    for (int layer = 0; emptying != nullptr && layer < layers_; ++layer) {
      status.Update(stage_->Collect(kMicrobatch, {{layer, layer + 1}}));
    }
    status.Update(stage_->Forward(kMicrobatch));
    if (emptying != nullptr) status.Update(emptying->FreeAll());
    status.Update(stage_->Backward(kMicrobatch));
    SIPHON_CHECK(status.ok(), status.message());
  }

 private:
  Model model_;
  int layers_ = 0;
  std::unique_ptr<StageCompute> stage_;
  TokenBatches batches_;
};

// What a pass sends away.
struct LeavingTensors {
  int64_t count = 0;
  size_t bytes = 0;
};
LeavingTensors TensorsOf(Passes& passes) {
  Emptying emptying(passes.stage());
  passes.stage().Watch(&emptying);
  passes.Run(&emptying);
  passes.stage().Watch(nullptr);
  return {emptying.tensors(), emptying.bytes()};
}

// With as many zeros written as below.
void Kept(benchmark::State& state) {
  SetTorchThreads(1);
  Passes passes;
  std::vector<std::byte> zeros(TensorsOf(passes).bytes);
  for (auto _ : state) {
    passes.Run(nullptr);
    std::memset(zeros.data(), 0, zeros.size());
    benchmark::DoNotOptimize(zeros.data());
  }
}

void Leaving(benchmark::State& state) {
  SetTorchThreads(1);
  Passes passes;
  state.counters["tensors"] = static_cast<double>(TensorsOf(passes).count);
  Emptying emptying(passes.stage());
  passes.stage().Watch(&emptying);
  for (auto _ : state) passes.Run(&emptying);
  passes.stage().Watch(nullptr);
}

double LeastOf(const std::vector<double>& times) {
  return *std::min_element(times.begin(), times.end());
}

// In turns, so that both see the same machine; the least of each, as other work only adds to it.
constexpr int kTurns = 41;
BENCHMARK(Kept)->Repetitions(kTurns)->MinTime(0.05)->ComputeStatistics("least", LeastOf);
BENCHMARK(Leaving)->Repetitions(kTurns)->MinTime(0.05)->ComputeStatistics("least", LeastOf);

// Prints as always, and remembers the least times.
class DifferenceReporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> shown;
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Aggregate) continue;
      shown.push_back(run);
      if (run.aggregate_name != "least") continue;
      const auto tensors = run.counters.find("tensors");
      const double nanos = run.GetAdjustedCPUTime();
      if (tensors == run.counters.end()) {
        kept_ = nanos;
      } else {
        leaving_ = nanos;
        tensors_ = tensors->second.value;
      }
    }
    ConsoleReporter::ReportRuns(shown);
  }
  double NanosPerTensor() const { return (leaving_ - kept_) / tensors_; }
  double tensors() const { return tensors_; }

 private:
  double kept_ = 0, leaving_ = 0, tensors_ = 1;
};

int Main(std::vector<char*> arguments) {
  char interleave[] = "--benchmark_enable_random_interleaving=true";
  arguments.push_back(interleave);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  std::cout << MachineName() << "\n";
  DifferenceReporter reporter;
  if (benchmark::RunSpecifiedBenchmarks(&reporter) == 0) return 1;
  const double nanos = reporter.NanosPerTensor();
  std::cout << "that they can leave costs " << nanos << " ns for each of " << reporter.tensors()
            << " saved tensors; limit " << kMostNanosPerTensor << "\n";
  return nanos <= kMostNanosPerTensor ? 0 : 1;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) { return siphon::Main(std::vector<char*>(argv, argv + argc)); }
