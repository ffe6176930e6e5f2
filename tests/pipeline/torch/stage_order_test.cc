// What every stage answers to calls in an impossible order, of the stage that computes with
// LibTorch.

#include <gtest/gtest.h>

#include <memory>

#include "pipeline/torch/layers.h"
#include "pipeline/torch/torch_stage.h"
#include "tests/pipeline/stage_conformance.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

class TorchStageOrder : public testing::Test {
 protected:
  static ModelOptions FourLayers() {
    ModelOptions options = TinyGpt();
    options.layers = 2;
    return options;
  }
  StageWorld World() {
    return {.make =
                [this](int stage) {
                  return *MakeTorchStage(*model_, CutEvenly(4, 2), StageId(stage), 17,
                                         OptimizerOptions());
                },
            .train = batch_.Inputs(0, StepMode::kTrain),
            .evaluate = batch_.Inputs(0, StepMode::kEvaluate)};
  }

  const absl::StatusOr<Model> model_ = BuildModel(FourLayers());
  const TokenBatch batch_{model_->spec, 2, 2, 5};
};

TEST_F(TorchStageOrder, PassesRunOnceAndInOrder) { ExpectPassesRunOnceAndInOrder(World()); }
TEST_F(TorchStageOrder, HalvesRunOnceAndInOrder) { ExpectHalvesRunOnceAndInOrder(World()); }
TEST_F(TorchStageOrder, BoundariesExistWhereTheyMakeSense) {
  ExpectBoundariesExistWhereTheyMakeSense(World());
}
TEST_F(TorchStageOrder, DroppedLayersComeBackOnce) { ExpectDroppedLayersComeBackOnce(World()); }
TEST_F(TorchStageOrder, CollectedLayersMayBeAway) { ExpectCollectedLayersMayBeAway(World()); }

}  // namespace
}  // namespace siphon
