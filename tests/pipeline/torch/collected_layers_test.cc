// What collected layers save, byte for byte, against what models say of themselves.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/graphs/collected_layers.h"
#include "pipeline/torch/layers.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/memory/layer_uses.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

constexpr int64_t kSamples = 2;

// Keeps to itself; a test looks at what the stage has saved.
class Watcher final : public PassWatch {
 public:
  absl::Status Enter(int) override { return absl::OkStatus(); }
  absl::Status Leave(int) override { return absl::OkStatus(); }
  absl::Status BeginRecompute(MicrobatchId, StageRange) override { return absl::OkStatus(); }
  void EndRecompute() override {}
  absl::Status Saved(MicrobatchId, StageRange layers) override {
    saved.push_back(layers);
    return absl::OkStatus();
  }
  absl::Status Need(MicrobatchId, StageRange layers) override {
    needed.push_back(layers);
    return absl::OkStatus();
  }
  std::vector<StageRange> saved;
  std::vector<StageRange> needed;
};

Bytes Sum(const TensorSpans& spans) {
  Bytes sum;
  for (const auto& span : spans) sum += Bytes(static_cast<int64_t>(span.size()));
  return sum;
}

bool Saves(const LayerSpec& layer, SavedStorage storage) {
  for (const SavedTensorSpec& saved : layer.memory->saved) {
    if (saved.storage == storage) return true;
  }
  return false;
}

// Of the layers as one stage. What a layer puts out and the next saves as well is the next one's.
Bytes ExpectedBytes(const ModelSpec& model, int layer) {
  const LayerSpec& spec = model.layers[layer];
  const int next = layer + 1;
  const bool next_saves_too = next < static_cast<int>(model.layers.size()) &&
                              Saves(model.layers[next], SavedStorage::kInput);
  Bytes expected;
  for (const SavedTensorSpec& saved : spec.memory->saved) {
    const bool data = saved.storage == SavedStorage::kInput && layer == 0;
    const bool of_next = saved.storage == SavedStorage::kOutput && next_saves_too;
    if (data || of_next) continue;
    expected += SavedMicrobatchBytes(saved, kSamples, Precision::kFloat32);
  }
  return expected;
}

// With dropout and without; of a few tokens, whose norms save less than a cache line.
std::vector<ModelOptions> OptionsOf(const std::string& kind) {
  std::vector<ModelOptions> all;
  for (const double dropout : {0.0, 0.1}) {
    ModelOptions options = TinyGpt();
    options.kind = kind;
    options.dropout = dropout;
    all.push_back(options);
    options.sequence_length = 4;
    all.push_back(options);
  }
  return all;
}

class CollectedBytes : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }

  // So many bytes of the layer leave and come back, and a byte less are refused.
  static void ExpectFirstBytes(const Model& model, int layer, Bytes first) {
    const int layers = static_cast<int>(model.spec.layers.size());
    const auto ledger = std::make_shared<MemoryLedger>(Bytes(0));
    const LedgerScope scope(ledger);
    const TokenBatch batch(model.spec, 2, kSamples, 5);
    const StepInputs inputs = batch.Inputs(0, StepMode::kTrain);
    for (const Bytes bytes : {first, first - Bytes(1)}) {
      const auto stage = MakeTorchStage(model, CutEvenly(layers, 1), StageId(0), 3, {});
      ASSERT_TRUE(stage.ok()) << stage.status();
      ASSERT_TRUE((*stage)->BeginStep(inputs).ok());
      const MicrobatchId microbatch(0);
      const StageRange range = {layer, layer + 1};
      ASSERT_TRUE((*stage)->Collect(microbatch, {range, bytes}).ok());
      const absl::Status forward = (*stage)->Forward(microbatch);
      if (bytes != first) {
        EXPECT_EQ(forward.code(), absl::StatusCode::kInvalidArgument) << forward;
        EXPECT_NE(forward.message().find(model.spec.layers[layer].name), std::string::npos)
            << forward;
        continue;
      }
      ASSERT_TRUE(forward.ok()) << forward;
      const auto spans = (*stage)->SavedTensors(microbatch, range);
      ASSERT_TRUE(spans.ok()) << spans.status();
      EXPECT_EQ(Sum(*spans), first);
      const Bytes held = ledger->used();
      ASSERT_TRUE((*stage)->FreeSaved(microbatch, range).ok());
      EXPECT_EQ(held - ledger->used(), Sum(*spans));
      ASSERT_TRUE((*stage)->RefillSaved(microbatch, range).ok());
      EXPECT_EQ(ledger->used(), held);
    }
  }
};

TEST_P(CollectedBytes, AreThoseThatTheModelNames) {
  SetTorchThreads(1);
  for (const ModelOptions& options : OptionsOf(GetParam())) {
    const auto model = BuildModel(options);
    ASSERT_TRUE(model.ok()) << model.status();
    const int layers = static_cast<int>(model->spec.layers.size());
    const auto ledger = std::make_shared<MemoryLedger>(Bytes(0));
    const LedgerScope scope(ledger);
    const auto stage = MakeTorchStage(*model, CutEvenly(layers, 1), StageId(0), 3, {});
    ASSERT_TRUE(stage.ok()) << stage.status();
    const TokenBatch batch(model->spec, 2, kSamples, 5);
    const StepInputs inputs = batch.Inputs(0, StepMode::kTrain);
    Watcher watch;
    (*stage)->Watch(&watch);
    ASSERT_TRUE((*stage)->BeginStep(inputs).ok());
    const MicrobatchId first(0);
    for (int layer = 0; layer < layers; ++layer) {
      ASSERT_TRUE((*stage)->Collect(first, {{layer, layer + 1}}).ok());
    }
    const Bytes before = ledger->used();
    ASSERT_TRUE((*stage)->Forward(first).ok());
    const Bytes forwarded = ledger->used();
    EXPECT_EQ(watch.saved.size(), static_cast<size_t>(layers));
    Bytes all;
    for (int layer = 0; layer < layers; ++layer) {
      SCOPED_TRACE(model->spec.layers[layer].name);
      const auto spans = (*stage)->SavedTensors(first, {layer, layer + 1});
      ASSERT_TRUE(spans.ok()) << spans.status();
      EXPECT_EQ(Sum(*spans), ExpectedBytes(model->spec, layer));
      all += Sum(*spans);
      const Bytes held = ledger->used();
      ASSERT_TRUE((*stage)->FreeSaved(first, {layer, layer + 1}).ok());
      EXPECT_EQ(held - ledger->used(), Sum(*spans));
    }
    // Everything that a forward leaves behind can leave.
    EXPECT_EQ(forwarded - before, all);
    EXPECT_GT(all.value, 0);
    for (int layer = layers - 1; layer >= 0; --layer) {
      const auto spans = (*stage)->RefillSaved(first, {layer, layer + 1});
      ASSERT_TRUE(spans.ok()) << spans.status();
      EXPECT_EQ(Sum(*spans), ExpectedBytes(model->spec, layer));
    }
    EXPECT_EQ(ledger->used(), forwarded);
    (*stage)->Watch(nullptr);
  }
}

// Of one layer what it saves first, for every number of tensors that can leave without the others.
TEST_P(CollectedBytes, OfTheFirstTensorsAreThoseThatTheModelNames) {
  SetTorchThreads(1);
  int choices = 0;
  for (const ModelOptions& options : OptionsOf(GetParam())) {
    const auto model = BuildModel(options);
    ASSERT_TRUE(model.ok()) << model.status();
    const int layers = static_cast<int>(model->spec.layers.size());
    for (int layer = 0; layer < layers; ++layer) {
      const LayerProfile saves = {
          .saved = SavedOf(*model->spec.layers[layer].memory, kSamples, Precision::kFloat32)};
      for (const int count : FirstTensorsOf(saves)) {
        SCOPED_TRACE(absl::StrCat(model->spec.layers[layer].name, ", first ", count));
        ++choices;
        Bytes first;
        for (int tensor = 0; tensor < count; ++tensor) first += saves.saved[tensor].bytes;
        ExpectFirstBytes(*model, layer, first);
      }
    }
  }
  EXPECT_GT(choices, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, CollectedBytes, testing::Values("gpt", "bert", "mlp"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace siphon
