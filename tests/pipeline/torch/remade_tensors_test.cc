// Dropped layers computed again: how far, with which gradients, in how much memory.

#include "pipeline/torch/graphs/remade_tensors.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/graphs/layer_graph.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/memory/layer_uses.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Extent = RemadeTensors::Extent;
using Marks = std::vector<std::string>;

// y = relu(x A) B, with a mark behind each product. Saved for the backward, in this order: x, A,
// relu's result, again that result, B.
class TwoProducts {
 public:
  TwoProducts() {
    at::manual_seed(1);
    parameters_ = {at::randn({8, 16}), at::randn({16, 4})};
    inputs_ = {at::randn({3, 8})};
  }

  LayerPass Run(SavedTensorSink* sink) {
    const CollectSavedTensors collect(sink);
    return LayerPass::Train(
        [this](const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& inputs) {
          const at::Tensor hidden = at::relu(at::mm(inputs[0], parameters[0]));
          marks.push_back("hidden");
          std::vector<at::Tensor> outputs = {at::mm(hidden, parameters[1])};
          marks.push_back("output");
          return outputs;
        },
        parameters_, inputs_, LayerPass::InputGradients::kWanted);
  }
  // The pass that computes it again, and what becomes of it.
  absl::Status RunAgain(RemadeTensors& saved, Extent extent) {
    marks.clear();
    const absl::Status pass =
        CallTorch("again", [&] { static_cast<void>(Run(saved.SecondPass(extent))); });
    return saved.CheckSecondPass(pass);
  }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  Marks marks;

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> inputs_;
};

LayerGraph::Gradients BackwardOfOnes(LayerGraph graph) {
  return std::move(graph).Backward({at::ones({3, 4})});
}

TEST(RemadeTensors, AreThereBeforeTheLastProductOfALayer) {
  TwoProducts layer;
  const auto expected = BackwardOfOnes(layer.Run(nullptr).graph);
  for (const Extent extent : {Extent::kLastSaved, Extent::kWhole}) {
    RemadeTensors saved;
    layer.marks.clear();
    LayerPass pass = layer.Run(saved.FirstPass(layer.parameters(), Bytes(0)));
    pass.ReleaseInputs();
    EXPECT_THAT(layer.marks, ElementsAre("hidden", "output"));
    EXPECT_FALSE(saved.IsComplete());

    ASSERT_TRUE(layer.RunAgain(saved, extent).ok());
    EXPECT_EQ(layer.marks,
              extent == Extent::kWhole ? Marks({"hidden", "output"}) : Marks({"hidden"}));
    EXPECT_TRUE(saved.IsComplete());
    const auto found = BackwardOfOnes(std::move(pass.graph));
    EXPECT_TRUE(at::equal(found.inputs[0], expected.inputs[0]));
    EXPECT_TRUE(at::equal(found.parameters[0], expected.parameters[0]));
    EXPECT_TRUE(at::equal(found.parameters[1], expected.parameters[1]));
  }
}

TEST(RemadeTensors, AreNeededBeforeTheBackward) {
  TwoProducts layer;
  RemadeTensors saved;
  LayerPass pass = layer.Run(saved.FirstPass(layer.parameters(), Bytes(0)));
  const absl::Status run = CallTorch("backward", [&] { BackwardOfOnes(std::move(pass.graph)); });
  EXPECT_THAT(run.message(), HasSubstr("the graph of a dropped layer was run"));
}

TEST(RemadeTensors, LeaveAnErrorOfTheLayerAsItIs) {
  TwoProducts layer;
  RemadeTensors saved;
  LayerPass pass = layer.Run(saved.FirstPass(layer.parameters(), Bytes(0)));
  saved.SecondPass(Extent::kLastSaved);
  EXPECT_EQ(saved.CheckSecondPass(absl::ResourceExhaustedError("full")),
            absl::ResourceExhaustedError("full"));
}

TEST(RemadeTensors, GoWithWhatReadsThem) {
  TwoProducts layer;
  RemadeTensors saved;
  layer.Run(saved.FirstPass(layer.parameters(), Bytes(0)));  // and nobody keeps the graph
  EXPECT_TRUE(saved.IsComplete());
}

// A gpt as one stage, whose layers say when they are through.
class DroppedGpt : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    InstallCountingAllocator();
    SetTorchThreads(1);
  }

  void SetUp() override {
    auto model = BuildModel(TinyGpt());
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    layers_ = static_cast<int>(model_.forward.size());
    through_.assign(model_.forward.size(), 0);
    for (int layer = 0; layer < layers_; ++layer) {
      model_.forward[layer] = [this, layer, forward = model_.forward[layer]](
                                  LayerContext& context, const std::vector<at::Tensor>& inputs) {
        std::vector<at::Tensor> outputs = forward(context, inputs);
        ++through_[layer];
        return outputs;
      };
    }
    batch_ = std::make_unique<TokenBatch>(model_.spec, 1, 2, 5);
  }

  std::unique_ptr<StageCompute> BeginStep() {
    auto stage = MakeTorchStage(model_, CutEvenly(layers_, 1), StageId(0), 3, {});
    EXPECT_TRUE(stage.ok()) << stage.status();
    EXPECT_TRUE((*stage)->BeginStep(batch_->Inputs(0, StepMode::kTrain)).ok());
    return *std::move(stage);
  }

  Model model_;
  int layers_ = 0;
  std::vector<int> through_;  // [layer] forward passes that came to their end
  std::unique_ptr<TokenBatch> batch_;
  const MicrobatchId only_{0};
};

TEST_F(DroppedGpt, StopsInTheLastLayerOfEachRun) {
  const auto stage = BeginStep();
  ASSERT_EQ(layers_, 4);  // embedding, two blocks, head
  ASSERT_TRUE(stage->Drop(only_, {{0, 1}}).ok());
  ASSERT_TRUE(stage->Drop(only_, {{1, 3}}).ok());
  ASSERT_TRUE(stage->Forward(only_).ok());
  EXPECT_THAT(through_, ElementsAre(1, 1, 1, 1));
  ASSERT_TRUE(stage->Backward(only_).ok());
  EXPECT_THAT(through_, ElementsAre(1, 2, 1, 1));
}

TEST_F(DroppedGpt, HoldsNoMoreThanTheFirstPassDid) {
  const auto kept_ledger = std::make_shared<MemoryLedger>(Bytes(0));
  const auto dropped_ledger = std::make_shared<MemoryLedger>(Bytes(0));
  Bytes kept;  // for the backward
  Bytes kept_peak;
  {
    const LedgerScope scope(kept_ledger);
    const auto stage = BeginStep();
    const Bytes before = kept_ledger->used();
    kept_ledger->ResetPeak();
    ASSERT_TRUE(stage->Forward(only_).ok());
    kept = kept_ledger->used() - before;
    kept_peak = kept_ledger->peak() - before;
  }
  const LedgerScope scope(dropped_ledger);
  const auto stage = BeginStep();
  const Bytes before = dropped_ledger->used();
  ASSERT_TRUE(stage->Drop(only_, {{0, layers_}}).ok());
  ASSERT_TRUE(stage->Forward(only_).ok());
  EXPECT_EQ(dropped_ledger->used(), before);  // the data is not the stage's
  dropped_ledger->ResetPeak();
  ASSERT_TRUE(stage->Recompute(only_, {0, layers_}).ok());
  // Without the loss and what each layer's leaf holds beside what is saved.
  EXPECT_LE(dropped_ledger->used() - before, kept);
  EXPECT_GT((dropped_ledger->used() - before).value, kept.value / 2);
  EXPECT_LE(dropped_ledger->peak() - before, kept_peak);
  ASSERT_TRUE(stage->Backward(only_).ok());
}

// Of a block only what it saves first: as much less is there, and computing it again ends before
// what was kept.
TEST_F(DroppedGpt, KeepsWhatIsSavedBehindTheFirstTensors) {
  const auto ledger = std::make_shared<MemoryLedger>(Bytes(0));
  const LedgerScope scope(ledger);
  const LayerProfile saves = {
      .saved = SavedOf(*model_.spec.layers[1].memory, /*microbatch=*/2, Precision::kFloat32)};
  const auto forwarded = [&](const LayerTensors& dropped) {
    auto stage = BeginStep();
    const Bytes before = ledger->used();
    EXPECT_TRUE(stage->Drop(only_, dropped).ok());
    EXPECT_TRUE(stage->Forward(only_).ok());
    const Bytes after = ledger->used();
    EXPECT_TRUE(stage->Backward(only_).ok());
    return after - before;
  };
  const Bytes all_dropped = forwarded({{1, 2}});
  const std::vector<int> counts = FirstTensorsOf(saves);
  ASSERT_GT(counts.size(), 2u);
  for (const int count : counts) {
    SCOPED_TRACE(count);
    Bytes first;
    for (int tensor = 0; tensor < count; ++tensor) first += saves.saved[tensor].bytes;
    through_.assign(through_.size(), 0);
    EXPECT_EQ(forwarded({{1, 2}, first}) - all_dropped, SavedBytes(saves) - first);
    EXPECT_THAT(through_, ElementsAre(1, 1, 1, 1));
  }
}

TEST_F(DroppedGpt, NamesTheLayerThatSavesSomethingElse) {
  const LayerForward block = model_.forward[1];
  struct Case {
    Extent extent;
    LayerForward second;
    std::string message;
  };
  const LayerForward fewer = [](LayerContext&, const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{inputs[0] + 1};
  };
  const LayerForward another = [block](LayerContext& context,
                                       const std::vector<at::Tensor>& inputs) {
    return block(context, {inputs[0].exp()});
  };
  const LayerForward more = [block](LayerContext& context, const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{block(context, inputs)[0].exp()};
  };
  for (const auto& [extent, second, message] :
       {Case{Extent::kLastSaved, fewer, "it saves 0 tensors of "},
        Case{Extent::kLastSaved, another, "it saves F32[2, 8, 16] where it saved F32["},
        Case{Extent::kWhole, more, "it saves F32[2, 8, 16] too"}}) {
    int calls = 0;
    model_.forward[1] = [&, again = second](LayerContext& context,
                                            const std::vector<at::Tensor>& inputs) {
      return calls++ == 0 ? block(context, inputs) : again(context, inputs);
    };
    const StageRange run = {1, extent == Extent::kWhole ? 3 : 2};
    const auto stage = BeginStep();
    ASSERT_TRUE(stage->Drop(only_, {run}).ok());
    ASSERT_TRUE(stage->Forward(only_).ok());
    const absl::Status status = stage->Recompute(only_, run);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr(message));
    EXPECT_THAT(status.message(), HasSubstr(model_.spec.layers[1].name));
  }
}

}  // namespace
}  // namespace siphon
