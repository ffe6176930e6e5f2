// What the swap engine's bookkeeping costs: a group out and back, with copies that take no time, in
// nanoseconds a tensor, and a microbatch out and back on the CPU backend with its threads. Fails
// when the bookkeeping of a tensor takes more than a microsecond (10,000 tensors a step are then 1
// % of a step of 1 s).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/status.h"
#include "swap/device/cpu_backend.h"
#include "swap/swap_engine.h"
#include "tests/bench/machine_name.h"
#include "tests/swap/parking_lot.h"

namespace siphon {
namespace {

constexpr double kMostNanosPerTensor = 1000;
constexpr int kMicrobatches = 8;  // away at once
constexpr size_t kTensorBytes = 256;

// Copies are complete at once, and move nothing.
class NoCopies final : public DeviceBackend {
 public:
  CopyEvent StartCopy(CopyLane, std::vector<CopyPart> parts) override {
    benchmark::DoNotOptimize(parts.data());
    return CopyEvent(0);
  }
  absl::StatusOr<bool> Test(CopyEvent) override { return true; }
  absl::Status Wait(CopyEvent) override { return absl::OkStatus(); }
  void Abort() override {}
  std::vector<CopyLinkUse> TakeUse() override { return {}; }
  void SlowDown(CopyLinkId, double) override {}
};

// A group of so many tensors, striped over so many lenders, away with kMicrobatches at once.
class Setting {
 public:
  Setting(int tensors, int lenders) : bytes_(tensors * 2 * kTensorBytes) {
    std::vector<std::pair<ParkingPlace, int64_t>> stripes;
    for (int lender = 0; lender < lenders; ++lender) {
      stripes.push_back({{.tier = Placement::kPeerSwap, .lender = DeviceId(lender)},
                         static_cast<int64_t>(tensors * kTensorBytes / lenders + 1)});
    }
    AddSlots(parking_, 0, kMicrobatches, stripes);
    lot_ = std::make_unique<ParkingLot>(parking_);
    for (int tensor = 0; tensor < tensors; ++tensor) {
      // A gap behind each, so that no two are joined.
      tensors_.push_back(absl::MakeSpan(bytes_).subspan(tensor * 2 * kTensorBytes, kTensorBytes));
    }
  }
  SwapEngine EngineOn(DeviceBackend* backend) {
    return SwapEngine(backend, parking_, lot_->Memory(), SwapCheck::kCheap);
  }
  // All microbatches out, then back.
  void Run(SwapEngine& engine) const {
    absl::Status status;
    for (int m = 0; m < kMicrobatches; ++m) {
      status.Update(engine.StartOut(Group(m), {tensors_.begin(), tensors_.end()}));
    }
    for (int m = 0; m < kMicrobatches; ++m) status.Update(engine.WaitOut(Group(m)));
    for (int m = 0; m < kMicrobatches; ++m) status.Update(engine.StartIn(Group(m), tensors_));
    for (int m = 0; m < kMicrobatches; ++m) status.Update(engine.WaitIn(Group(m)));
    SIPHON_CHECK(status.ok(), status.message());
  }

 private:
  static ParkedGroup Group(int microbatch) {
    return {StageId(0), GroupId(0), MicrobatchId(microbatch)};
  }
  WorkerParking parking_;
  std::unique_ptr<ParkingLot> lot_;
  std::vector<std::byte> bytes_;
  std::vector<absl::Span<std::byte>> tensors_;
};

// Processor time of this thread for one of `each_run` things.
void Count(benchmark::State& state, const char* name, int64_t each_run) {
  using benchmark::Counter;
  state.counters[name] =
      Counter(static_cast<double>(each_run), Counter::kIsIterationInvariantRate | Counter::kInvert);
}

void Books(benchmark::State& state) {
  const int tensors = static_cast<int>(state.range(0));
  Setting setting(tensors, static_cast<int>(state.range(1)));
  NoCopies backend;
  SwapEngine engine = setting.EngineOn(&backend);
  for (auto _ : state) setting.Run(engine);
  Count(state, "per_tensor", int64_t{kMicrobatches} * tensors);
  Count(state, "per_action", int64_t{kMicrobatches} * 4);
}
BENCHMARK(Books)->ArgNames({"tensors", "lenders"})->ArgsProduct({{10, 100}, {1, 5}});

void WithThreads(benchmark::State& state) {
  const int tensors = static_cast<int>(state.range(0));
  const int lenders = static_cast<int>(state.range(1));
  Setting setting(tensors, lenders);
  CpuBackendOptions options;
  options.links.resize(lenders);
  CpuBackend backend(options);
  SwapEngine engine = setting.EngineOn(&backend);
  for (auto _ : state) setting.Run(engine);
  Count(state, "worker_per_tensor", int64_t{kMicrobatches} * tensors);
}
BENCHMARK(WithThreads)->ArgNames({"tensors", "lenders"})->ArgsProduct({{10, 100}, {1, 5}});

// Prints as always, and remembers the slowest books.
class LimitReporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const auto counter = run.counters.find("per_tensor");
      if (counter != run.counters.end()) slowest_ = std::max(slowest_, counter->second.value * 1e9);
    }
  }
  // Nanoseconds a tensor.
  double slowest() const { return slowest_; }

 private:
  double slowest_ = 0;
};

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::cout << MachineName() << "\n";
  LimitReporter reporter;
  if (benchmark::RunSpecifiedBenchmarks(&reporter) == 0) return 1;
  std::cout << "slowest bookkeeping: " << reporter.slowest() << " ns a tensor, out and back; limit "
            << kMostNanosPerTensor << "\n";
  return reporter.slowest() <= kMostNanosPerTensor ? 0 : 1;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) { return siphon::Main(argc, argv); }
