#include "tests/pipeline/torch/stage_harness.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "planner/keyed_hash.h"
#include "planner/status.h"

namespace siphon {
namespace {

void Copy(const TensorSpans& from, const TensorSpans& to) {
  ASSERT_EQ(from.size(), to.size());
  for (size_t part = 0; part < from.size(); ++part) {
    ASSERT_EQ(from[part].size(), to[part].size());
    if (!from[part].empty()) std::memcpy(to[part].data(), from[part].data(), from[part].size());
  }
}

// Moves a boundary from the stage that made it to its neighbour.
void Move(StageCompute& from, Boundary made, StageCompute& to, Boundary taken,
          MicrobatchId microbatch) {
  const auto source = from.Buffers(made, microbatch);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto target = to.Buffers(taken, microbatch);
  ASSERT_TRUE(target.ok()) << target.status();
  Copy(*source, *target);
  ASSERT_TRUE(from.Release(made, microbatch).ok());
}

// What workers do at the end of a step with parameters that several of them use.
void ExchangeSharedGradients(const std::vector<std::unique_ptr<StageCompute>>& stages,
                             const std::vector<std::vector<std::string>>& owners) {
  // owners[stage]: "<parameter>@<layer>" of the uses that the stage computes itself.
  std::map<std::string, std::string> made;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const auto shared = stages[stage]->SharedGradients();
    ASSERT_TRUE(shared.ok()) << shared.status();
    for (const SharedGradient& gradient : *shared) {
      const std::string key = absl::StrCat(gradient.parameter, "@", gradient.layer);
      for (const std::string& own : owners[stage]) {
        if (own != key) continue;
        made[key].assign(reinterpret_cast<const char*>(gradient.bytes.data()),
                         gradient.bytes.size());
      }
    }
  }
  for (const auto& stage : stages) {
    const auto shared = stage->SharedGradients();
    ASSERT_TRUE(shared.ok()) << shared.status();
    for (const SharedGradient& gradient : *shared) {
      const std::string& bytes = made[absl::StrCat(gradient.parameter, "@", gradient.layer)];
      ASSERT_EQ(bytes.size(), gradient.bytes.size());
      std::memcpy(gradient.bytes.data(), bytes.data(), bytes.size());
    }
    const absl::Status added = stage->AddSharedGradients();
    ASSERT_TRUE(added.ok()) << added;
  }
}

}  // namespace

ModelOptions TinyGpt() {
  ModelOptions options;
  options.kind = "gpt";
  options.layers = 2;
  options.hidden = 16;
  options.heads = 2;
  options.vocabulary = 32;
  options.sequence_length = 8;
  return options;
}

StagePartition CutEvenly(int layers, int stages) {
  StagePartition partition;
  for (int stage = 0; stage < stages; ++stage) {
    partition.stages.push_back({stage * layers / stages, (stage + 1) * layers / stages});
  }
  return partition;
}

// Keeps what one stage has saved, as bytes.
class HandRunPipeline::Parking final : public PassWatch {
 public:
  explicit Parking(StageCompute& stage) : stage_(stage) {}

  absl::Status Enter(int) override { return absl::OkStatus(); }
  absl::Status Leave(int) override { return absl::OkStatus(); }
  absl::Status BeginRecompute(MicrobatchId, StageRange) override { return absl::OkStatus(); }
  void EndRecompute() override {}
  absl::Status Saved(MicrobatchId microbatch, StageRange layers) override {
    SIPHON_ASSIGN_OR_RETURN(const TensorSpans tensors, stage_.SavedTensors(microbatch, layers));
    Parked& parked = parked_.emplace_back(Parked{microbatch, layers});
    for (const absl::Span<std::byte> tensor : tensors) {
      parked.bytes.emplace_back(tensor.begin(), tensor.end());
      bytes_out_ += tensor.size();
    }
    return absl::OkStatus();
  }
  absl::Status Need(MicrobatchId microbatch, StageRange layers) override {
    const auto parked = std::find_if(parked_.begin(), parked_.end(), [&](const Parked& each) {
      return each.microbatch == microbatch && each.layers == layers;
    });
    if (parked == parked_.end()) return absl::InternalError("needed, and was never saved");
    if (!parked->taken) SIPHON_RETURN_IF_ERROR(Refill(*parked));
    for (size_t tensor = 0; tensor < parked->bytes.size(); ++tensor) {
      const absl::Span<std::byte> to = parked->memory[tensor];
      if (!to.empty()) std::memcpy(to.data(), parked->bytes[tensor].data(), to.size());
    }
    parked_.erase(parked);
    return absl::OkStatus();
  }

  // Frees what the microbatch has saved.
  void Free(MicrobatchId microbatch) {
    for (const Parked& parked : parked_) {
      if (parked.microbatch != microbatch) continue;
      const absl::Status freed = stage_.FreeSaved(microbatch, parked.layers);
      EXPECT_TRUE(freed.ok()) << freed;
    }
  }
  void Take(MicrobatchId microbatch) {
    for (Parked& parked : parked_) {
      if (parked.microbatch != microbatch) continue;
      const absl::Status taken = Refill(parked);
      EXPECT_TRUE(taken.ok()) << taken;
    }
  }
  size_t parked() const { return parked_.size(); }
  size_t bytes_out() const { return bytes_out_; }

 private:
  struct Parked {
    MicrobatchId microbatch;
    StageRange layers;
    std::vector<std::vector<std::byte>> bytes;
    bool taken = false;
    TensorSpans memory;
  };

  absl::Status Refill(Parked& parked) {
    SIPHON_ASSIGN_OR_RETURN(parked.memory, stage_.RefillSaved(parked.microbatch, parked.layers));
    if (parked.memory.size() != parked.bytes.size()) {
      return absl::InternalError("not as many tensors come back as have left");
    }
    parked.taken = true;
    for (const absl::Span<std::byte> memory : parked.memory) {
      if (!memory.empty()) std::memset(memory.data(), 0xff, memory.size());  // NaN, if it is used
    }
    return absl::OkStatus();
  }

  StageCompute& stage_;
  std::vector<Parked> parked_;
  size_t bytes_out_ = 0;
};

HandRunPipeline::~HandRunPipeline() = default;

void HandRunPipeline::DropInRunsOf(int layers) {
  run_ = layers;
  drops_ = layers > 0;
}

void HandRunPipeline::ParkInRunsOf(int layers) {
  run_ = layers;
  for (const auto& stage : stages_) {
    parkings_.push_back(std::make_unique<Parking>(*stage));
    stage->Watch(parkings_.back().get());
  }
}

std::vector<size_t> HandRunPipeline::ParkedBytes() const {
  std::vector<size_t> bytes;
  for (const auto& parking : parkings_) bytes.push_back(parking->bytes_out());
  return bytes;
}

HandRunPipeline::Run HandRunPipeline::WhatOf(size_t run) const {
  if (parkings_.empty()) return Run::kDropped;
  if (!drops_) return Run::kParked;
  constexpr Run kTurns[] = {Run::kParked, Run::kDropped, Run::kParked, Run::kKept};
  return kTurns[run % 4];
}

TokenBatch::TokenBatch(const ModelSpec& spec, int microbatches, int64_t samples, uint64_t seed)
    : spec_(spec) {
  KeyedGenerator generator(seed);
  for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
    Microbatch made = {EmptyTensor(Batched(spec.input, samples)),
                       EmptyTensor(Batched(spec.target, samples))};
    for (at::Tensor* tensor : {&made.input, &made.target}) {
      int64_t* tokens = tensor->mutable_data_ptr<int64_t>();
      for (int64_t index = 0; index < tensor->numel(); ++index) {
        tokens[index] = static_cast<int64_t>(generator.Below(spec.classes));
      }
    }
    microbatches_.push_back(made);
  }
}

StepInputs TokenBatch::Inputs(int64_t step, StepMode mode) const {
  StepInputs inputs;
  inputs.step = step;
  inputs.mode = mode;
  inputs.target_count = 0;
  for (const Microbatch& microbatch : microbatches_) {
    const int64_t samples = microbatch.input.size(0);
    inputs.target_count += microbatch.target.numel();
    inputs.microbatches.push_back({Batched(spec_.input, samples), Batched(spec_.target, samples),
                                   BytesOf(microbatch.input), BytesOf(microbatch.target)});
  }
  return inputs;
}

HandRunPipeline::HandRunPipeline(const Model& model, int stages, uint64_t seed,
                                 const OptimizerOptions& optimizer, const ComputeDevice& device) {
  SetTorchThreads(1);
  const int layers = static_cast<int>(model.spec.layers.size());
  partition_ = CutEvenly(layers, stages);
  for (int stage = 0; stage < stages; ++stage) {
    auto made =
        MakeTorchStage(model, partition_, StageId(stage), seed, optimizer, /*away=*/{}, device);
    EXPECT_TRUE(made.ok()) << made.status();
    stages_.push_back(*std::move(made));
    own_uses_.emplace_back();
    for (int layer = partition_.stages[stage].begin; layer < partition_.stages[stage].end;
         ++layer) {
      for (const ParameterSpec& parameter : model.spec.layers[layer].parameters) {
        own_uses_.back().push_back(absl::StrCat(parameter.name, "@", layer));
      }
    }
  }
}

std::vector<StageRange> HandRunPipeline::RunsOf(size_t stage) const {
  std::vector<StageRange> runs;
  const StageRange& layers = partition_.stages[stage];
  for (int begin = layers.begin; run_ > 0 && begin < layers.end; begin += run_) {
    runs.push_back({begin, std::min(begin + run_, layers.end)});
  }
  return runs;
}

void HandRunPipeline::ForwardAll(const StepInputs& inputs) {
  for (const auto& stage : stages_) {
    const absl::Status begun = stage->BeginStep(inputs);
    ASSERT_TRUE(begun.ok()) << begun;
  }
  for (size_t index = 0; index < inputs.microbatches.size(); ++index) {
    const MicrobatchId microbatch(static_cast<int>(index));
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      if (stage > 0) {
        Move(*stages_[stage - 1], Boundary::kOutput, *stages_[stage], Boundary::kInput, microbatch);
      }
      if (inputs.mode == StepMode::kTrain) {
        const std::vector<StageRange> runs = RunsOf(stage);
        for (size_t run = 0; run < runs.size(); ++run) {
          if (WhatOf(run) == Run::kKept) continue;
          const absl::Status told = WhatOf(run) == Run::kDropped
                                        ? stages_[stage]->Drop(microbatch, {runs[run]})
                                        : stages_[stage]->Collect(microbatch, {runs[run]});
          ASSERT_TRUE(told.ok()) << told;
        }
      }
      const absl::Status done = stages_[stage]->Forward(microbatch);
      ASSERT_TRUE(done.ok()) << done;
      if (!parkings_.empty() && inputs.mode == StepMode::kTrain) parkings_[stage]->Free(microbatch);
    }
  }
}

void HandRunPipeline::BackwardAll(int microbatches, Backward backward) {
  for (int index = 0; index < microbatches; ++index) {
    const MicrobatchId microbatch(index);
    for (size_t stage = stages_.size(); stage-- > 0;) {
      if (stage + 1 < stages_.size()) {
        Move(*stages_[stage + 1], Boundary::kInputGradient, *stages_[stage],
             Boundary::kOutputGradient, microbatch);
      }
      if (!parkings_.empty() && index % 2 == 0) parkings_[stage]->Take(microbatch);
      const auto runs = RunsOf(stage);
      if (index % 2 == 1 && !runs.empty() && WhatOf(0) == Run::kDropped) {
        const absl::Status again = stages_[stage]->Recompute(microbatch, runs.front());
        EXPECT_TRUE(again.ok()) << again;
      }
      const absl::Status done = backward == Backward::kWhole
                                    ? stages_[stage]->Backward(microbatch)
                                    : stages_[stage]->BackwardInput(microbatch);
      EXPECT_TRUE(done.ok()) << done;
    }
  }
  for (const auto& parking : parkings_) EXPECT_EQ(parking->parked(), 0u);
  for (int index = 0; backward == Backward::kHalves && index < microbatches; ++index) {
    for (const auto& stage : stages_) {
      const absl::Status done = stage->BackwardWeight(MicrobatchId(index));
      EXPECT_TRUE(done.ok()) << done;
    }
  }
}

HandRunPipeline::Result HandRunPipeline::Train(const StepInputs& inputs,
                                               const UpdateSettings& settings, Backward backward) {
  ForwardAll(inputs);
  BackwardAll(static_cast<int>(inputs.microbatches.size()), backward);
  ExchangeSharedGradients(stages_, own_uses_);
  Result result;
  result.losses = stages_.back()->Losses();
  for (const auto& stage : stages_) {
    const auto norms = stage->GradientNorms();
    EXPECT_TRUE(norms.ok()) << norms.status();
    if (norms.ok()) result.norms.insert(result.norms.end(), norms->begin(), norms->end());
  }
  for (const auto& stage : stages_) {
    const absl::Status stepped = stage->Step(settings);
    EXPECT_TRUE(stepped.ok()) << stepped;
  }
  return result;
}

std::vector<float> HandRunPipeline::Evaluate(const StepInputs& inputs) {
  ForwardAll(inputs);
  return stages_.back()->Losses();
}

std::map<std::string, std::string> HandRunPipeline::OwnedState() { return CollectState(true); }
std::map<std::string, std::string> HandRunPipeline::CopiedState() { return CollectState(false); }

std::map<std::string, std::string> HandRunPipeline::CollectState(bool owned) {
  std::map<std::string, std::string> state;
  for (const auto& stage : stages_) {
    for (const StateTensor& tensor : stage->State()) {
      if (tensor.owned != owned) continue;
      const std::string key = absl::StrCat(tensor.name, "/", static_cast<int>(tensor.kind));
      EXPECT_FALSE(owned && state.contains(key)) << key << " has two owners";
      state[key].assign(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    }
  }
  return state;
}

}  // namespace siphon
