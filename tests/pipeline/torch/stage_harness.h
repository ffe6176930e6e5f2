#ifndef SIPHON_TESTS_PIPELINE_TORCH_STAGE_HARNESS_H_
#define SIPHON_TESTS_PIPELINE_TORCH_STAGE_HARNESS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/stage_compute.h"
#include "pipeline/torch/layers.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/stage_partition.h"

namespace siphon {

// A gpt of four layers that trains in milliseconds.
ModelOptions TinyGpt();

// Cuts `layers` layers into `stages` parts of sizes as equal as they can be.
StagePartition CutEvenly(int layers, int stages);

// Random token batches that stay alive while it lives, 64-byte aligned.
class TokenBatch {
 public:
  TokenBatch(const ModelSpec& spec, int microbatches, int64_t samples, uint64_t seed);
  StepInputs Inputs(int64_t step, StepMode mode) const;

 private:
  struct Microbatch {
    at::Tensor input;
    at::Tensor target;
  };
  ModelSpec spec_;
  std::vector<Microbatch> microbatches_;
};

// All stages of one model in this thread; what workers exchange is copied from span to span. Fails
// the test on any error.
class HandRunPipeline {
 public:
  struct Result {
    std::vector<float> losses;
    std::vector<float> norms;  // of all parameters, canonical order
    friend bool operator==(const Result&, const Result&) = default;
  };

  // How a microbatch goes backward: whole, or in two halves, the second ones behind all of the
  // first.
  enum class Backward { kWhole, kHalves };

  HandRunPipeline(const Model& model, int stages, uint64_t seed, const OptimizerOptions& optimizer,
                  const ComputeDevice& device = {});
  ~HandRunPipeline();

  // From now on every microbatch drops its activations, in runs of at most so many layers of a
  // stage. Odd microbatches compute the first run of each stage again before their backward.
  void DropInRunsOf(int layers);
  // From now on every microbatch parks its activations elsewhere, in runs likewise; where it drops
  // some too, runs are parked, dropped and kept in turn. Even microbatches take the memory again
  // before their backward, odd ones when it needs the run; all get the contents then.
  void ParkInRunsOf(int layers);
  // [stage]: what was parked up to now; empty: nothing is.
  std::vector<size_t> ParkedBytes() const;
  // One step, all forwards before all backwards.
  Result Train(const StepInputs& inputs, const UpdateSettings& settings,
               Backward backward = Backward::kWhole);
  std::vector<float> Evaluate(const StepInputs& inputs);
  // "<name>/<kind>" of what stages own -> its bytes.
  std::map<std::string, std::string> OwnedState();
  // The same of copies that other stages hold.
  std::map<std::string, std::string> CopiedState();
  StageCompute& stage(int index) { return *stages_[index]; }

 private:
  void ForwardAll(const StepInputs& inputs);
  void BackwardAll(int microbatches, Backward backward);
  enum class Run { kParked, kDropped, kKept };
  std::vector<StageRange> RunsOf(size_t stage) const;
  Run WhatOf(size_t run) const;
  std::map<std::string, std::string> CollectState(bool owned);

  StagePartition partition_;
  class Parking;

  int run_ = 0;  // 0: nothing is dropped or parked
  bool drops_ = false;
  std::vector<std::unique_ptr<StageCompute>> stages_;
  std::vector<std::unique_ptr<Parking>> parkings_;  // [stage]; empty: nothing is parked
  std::vector<std::vector<std::string>> own_uses_;  // [stage], "<parameter>@<layer>"
};

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_TORCH_STAGE_HARNESS_H_
