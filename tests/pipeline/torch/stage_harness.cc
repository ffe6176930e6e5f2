#include "tests/pipeline/torch/stage_harness.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipeline/torch/tensor_bytes.h"
#include "planner/keyed_hash.h"

namespace siphon::testing {
namespace {

void Copy(const BoundarySpans& from, const BoundarySpans& to) {
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
                                 const OptimizerOptions& optimizer) {
  SetTorchThreads(1);
  const int layers = static_cast<int>(model.spec.layers.size());
  partition_ = CutEvenly(layers, stages);
  for (int stage = 0; stage < stages; ++stage) {
    auto made = MakeTorchStage(model, partition_, StageId(stage), seed, optimizer);
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
        for (const StageRange& run : RunsOf(stage)) {
          const absl::Status dropped = stages_[stage]->Drop(microbatch, run);
          ASSERT_TRUE(dropped.ok()) << dropped;
        }
      }
      const absl::Status done = stages_[stage]->Forward(microbatch);
      ASSERT_TRUE(done.ok()) << done;
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
      if (const auto runs = RunsOf(stage); index % 2 == 1 && !runs.empty()) {
        const absl::Status again = stages_[stage]->Recompute(microbatch, runs.front());
        EXPECT_TRUE(again.ok()) << again;
      }
      const absl::Status done = backward == Backward::kWhole
                                    ? stages_[stage]->Backward(microbatch)
                                    : stages_[stage]->BackwardInput(microbatch);
      EXPECT_TRUE(done.ok()) << done;
    }
  }
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

}  // namespace siphon::testing
