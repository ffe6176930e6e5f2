// Stages on a device beside the CPU: whatever they make has to be there, and their bits are the
// CPU's, as the device has the CPU's kernels.

#include "tests/pipeline/torch/other_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/torch/keyed_random.h"
#include "pipeline/torch/layers.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

struct DeviceCase {
  std::string name;
  ModelOptions options;
  Precision precision = Precision::kFloat32;
  std::string optimizer = "adamw";
};

void PrintTo(const DeviceCase& what, std::ostream* out) { *out << what.name; }

// What happens to activations between forward and backward.
enum class Leaving { kNothing, kDropped, kParked };

struct Trained {
  std::vector<HandRunPipeline::Result> steps;
  std::map<std::string, std::string> state;
  std::vector<size_t> parked_bytes;  // [stage]
};

Trained TrainOn(const ComputeDevice& device, const DeviceCase& what, Leaving leaving,
                HandRunPipeline::Backward backward = HandRunPipeline::Backward::kWhole) {
  Model model = *BuildModel(what.options);
  SetPrecision(what.precision, HeldVectors::kComputed, model);
  HandRunPipeline pipeline(model, 2, 17, {.name = what.optimizer, .weight_decay = 0.1}, device);
  if (leaving == Leaving::kDropped) pipeline.DropInRunsOf(1);
  if (leaving == Leaving::kParked) pipeline.ParkInRunsOf(1);
  Trained trained;
  for (int step = 0; step < 2; ++step) {
    const TokenBatch batch(model.spec, /*microbatches=*/3, /*samples=*/2, /*seed=*/100 + step);
    trained.steps.push_back(pipeline.Train(
        batch.Inputs(step, StepMode::kTrain),
        {.update = step + 1, .learning_rate = 1e-2, .gradient_scale = 0.7f}, backward));
  }
  trained.state = pipeline.OwnedState();
  trained.parked_bytes = pipeline.ParkedBytes();
  return trained;
}

// Attention is written out: which fused kernel LibTorch takes is each device's own affair.
std::vector<DeviceCase> DeviceCases() {
  ModelOptions gpt = TinyGpt();
  gpt.flash_attention = false;
  ModelOptions bert = gpt;
  bert.kind = "bert";
  ModelOptions mlp = gpt;
  mlp.kind = "mlp";
  return {{"Gpt", gpt},
          {"GptInHalfPrecision", gpt, Precision::kBFloat16, "sgd"},
          {"Bert", bert, Precision::kFloat32, "adam"},
          {"Mlp", mlp}};
}

class OtherDevice : public testing::TestWithParam<DeviceCase> {};

// The CPU's bits; in 16 bits its norms round otherwise (held_bytes.h), so that a device is compared
// with itself.
ComputeDevice ComparedWith(const DeviceCase& what) {
  return what.precision == Precision::kFloat32 ? ComputeDevice{} : kOtherDevice;
}

TEST_P(OtherDevice, ComputesTheBitsOfItsKernels) {
  const Trained plain = TrainOn(ComparedWith(GetParam()), GetParam(), Leaving::kNothing);
  const int64_t calls = OtherDeviceCalls();
  for (const Leaving leaving : {Leaving::kNothing, Leaving::kDropped, Leaving::kParked}) {
    const Trained device = TrainOn(kOtherDevice, GetParam(), leaving);
    EXPECT_TRUE(device.steps == plain.steps) << "losses or norms differ";
    EXPECT_TRUE(device.state == plain.state) << "the state differs";
  }
  EXPECT_GT(OtherDeviceCalls(), calls + 1000) << "hardly anything ran there";
}

TEST_P(OtherDevice, GoesBackwardInTwoHalves) {
  const auto backward = HandRunPipeline::Backward::kHalves;
  const Trained plain = TrainOn(ComparedWith(GetParam()), GetParam(), Leaving::kNothing, backward);
  const Trained device = TrainOn(kOtherDevice, GetParam(), Leaving::kNothing, backward);
  EXPECT_TRUE(device.steps == plain.steps) << "losses or norms differ";
  EXPECT_TRUE(device.state == plain.state) << "the state differs";
}

// The data, of which a device has copies, stays there: plans do not have it among what layers save.
TEST_P(OtherDevice, ParksWhatTheCpuParks) {
  const Trained plain = TrainOn(ComparedWith(GetParam()), GetParam(), Leaving::kParked);
  const Trained device = TrainOn(kOtherDevice, GetParam(), Leaving::kParked);
  EXPECT_EQ(device.parked_bytes, plain.parked_bytes);
  EXPECT_EQ(device.parked_bytes.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Models, OtherDevice, testing::ValuesIn(DeviceCases()),
                         [](const auto& info) { return info.param.name; });

// The bytes of all parameters after a step, on the device or on the host.
enum class StepAt { kDevice, kHost };
std::map<std::string, std::string> ParametersAfterAStep(StepAt at) {
  SetTorchThreads(1);  // before LibTorch's thread of the device is there, which takes it over
  const Model model = *BuildModel(DeviceCases()[3].options);
  const int layers = static_cast<int>(model.spec.layers.size());
  std::vector<StateGroup> away;
  if (at == StepAt::kHost) away.push_back({GroupKind::kOptimizerState, {0, layers}});
  const auto made =
      MakeTorchStage(model, CutEvenly(layers, 1), StageId(0), 17, {}, away, kOtherDevice);
  StageCompute& stage = **made;
  std::vector<at::Tensor> memory;  // of the host
  const auto take = [&memory](size_t bytes) {
    memory.push_back(at::zeros({static_cast<int64_t>(bytes)}, at::kByte));
    return BytesOf(memory.back());
  };
  if (at == StepAt::kHost) {
    TensorSpans kept;
    for (const StepTensor& tensor : stage.StepTensors()) {
      kept.push_back(take(static_cast<size_t>(tensor.state_bytes.value)));
    }
    EXPECT_EQ(stage.KeepStateOnHost(kept), absl::OkStatus());
  }
  const TokenBatch batch(model.spec, 1, 2, 3);
  EXPECT_EQ(stage.BeginStep(batch.Inputs(0, StepMode::kTrain)), absl::OkStatus());
  EXPECT_EQ(stage.Forward(MicrobatchId(0)), absl::OkStatus());
  EXPECT_EQ(stage.Backward(MicrobatchId(0)), absl::OkStatus());
  const UpdateSettings settings{.update = 1, .learning_rate = 0.1};
  if (at == StepAt::kDevice) {
    EXPECT_EQ(stage.Step(settings), absl::OkStatus());
  } else {
    const std::vector<StepTensor> tensors = stage.StepTensors();
    std::vector<HostStepMemory> steps;
    for (const StepTensor& tensor : tensors) {
      steps.push_back({take(tensor.parameter.size()), take(tensor.gradient.size())});
      std::ranges::copy(tensor.parameter, steps.back().parameter.begin());
      std::ranges::copy(tensor.gradient, steps.back().gradient.begin());
    }
    EXPECT_EQ(stage.StepOnHost(settings, {0, layers}, steps), absl::OkStatus());
    for (size_t index = 0; index < tensors.size(); ++index) {
      std::ranges::copy(steps[index].parameter, tensors[index].parameter.begin());
    }
  }
  std::map<std::string, std::string> parameters;
  for (const StateTensor& tensor : stage.State()) {
    if (tensor.kind != StateTensor::Kind::kParameter) continue;
    parameters[tensor.name].assign(reinterpret_cast<const char*>(tensor.bytes.data()),
                                   tensor.bytes.size());
  }
  return parameters;
}

// Optimizer state is then the host's memory, beside parameters that are the device's.
TEST(OtherDeviceSteps, CanBeTakenOnTheHost) {
  const auto on_host = ParametersAfterAStep(StepAt::kHost);
  EXPECT_FALSE(on_host.empty());
  EXPECT_TRUE(on_host == ParametersAfterAStep(StepAt::kDevice));
}

// Masks are keyed there, too, by generators of the device's own.
TEST(OtherDeviceMasks, DependOnTheirKeyAlone) {
  const at::Device device = ToDevice(kOtherDevice);
  const auto mask = [&](int draw) {
    return KeyedDropoutMask(7, 1, 2, 3, draw, {64}, 0.5, at::kFloat, device).cpu();
  };
  EXPECT_TRUE(at::equal(mask(0), mask(0)));
  EXPECT_FALSE(at::equal(mask(0), mask(1)));
  DeviceCase dropping = DeviceCases()[0];
  dropping.options.dropout = 0.1;
  const Trained once = TrainOn(kOtherDevice, dropping, Leaving::kNothing);
  const Trained again = TrainOn(kOtherDevice, dropping, Leaving::kDropped);
  EXPECT_TRUE(once.steps == again.steps);
  EXPECT_TRUE(once.state == again.state);
}

// Whoever runs an action may take what it made as done, and its errors as the action's.
TEST(OtherDeviceActions, EndWhenTheDeviceIsThrough) {
  const Model model = *BuildModel(DeviceCases()[3].options);
  const int layers = static_cast<int>(model.spec.layers.size());
  const auto made =
      MakeTorchStage(model, CutEvenly(layers, 1), StageId(0), 17, {}, {}, kOtherDevice);
  StageCompute& stage = **made;
  const TokenBatch batch(model.spec, 1, 2, 3);
  int64_t waits = OtherDeviceWaits();
  const auto waited = [&waits] {
    return OtherDeviceWaits() > std::exchange(waits, OtherDeviceWaits());
  };
  EXPECT_EQ(stage.BeginStep(batch.Inputs(0, StepMode::kTrain)), absl::OkStatus());
  waited();
  EXPECT_EQ(stage.Forward(MicrobatchId(0)), absl::OkStatus());
  EXPECT_TRUE(waited());
  EXPECT_EQ(stage.BackwardInput(MicrobatchId(0)), absl::OkStatus());
  EXPECT_TRUE(waited());
  EXPECT_EQ(stage.BackwardWeight(MicrobatchId(0)), absl::OkStatus());
  EXPECT_TRUE(waited());
  EXPECT_EQ(stage.Step({.update = 1, .learning_rate = 0.1}), absl::OkStatus());
  EXPECT_TRUE(waited());
}

// The host runs ahead of the device through the last backward, too.
TEST(OtherDeviceNorms, AreReadOnceHoweverManyThereAre) {
  const Model model = *BuildModel(DeviceCases()[0].options);
  const int layers = static_cast<int>(model.spec.layers.size());
  const auto made =
      MakeTorchStage(model, CutEvenly(layers, 1), StageId(0), 17, {}, {}, kOtherDevice);
  StageCompute& stage = **made;
  const TokenBatch batch(model.spec, 1, 2, 3);
  ASSERT_EQ(stage.BeginStep(batch.Inputs(0, StepMode::kTrain)), absl::OkStatus());
  ASSERT_EQ(stage.Forward(MicrobatchId(0)), absl::OkStatus());
  const int64_t before = OtherDeviceReads();
  ASSERT_EQ(stage.Backward(MicrobatchId(0)), absl::OkStatus());
  EXPECT_EQ(OtherDeviceReads() - before, 0);
  const auto norms = stage.GradientNorms();
  ASSERT_TRUE(norms.ok()) << norms.status();
  EXPECT_GT(norms->size(), 20u);
  EXPECT_EQ(OtherDeviceReads() - before, 1);
}

// Checkpoints read and write it so.
TEST(OtherDeviceState, IsCopiedToTheHostAndBack) {
  const Model model = *BuildModel(DeviceCases()[3].options);
  const int layers = static_cast<int>(model.spec.layers.size());
  const auto made =
      MakeTorchStage(model, CutEvenly(layers, 1), StageId(0), 17, {}, {}, kOtherDevice);
  StageCompute& stage = **made;
  const StateTensor tensor = stage.State()[0];
  EXPECT_FALSE(tensor.on_host);
  const int64_t calls = OtherDeviceCalls();
  std::vector<std::byte> host(tensor.bytes.size());
  EXPECT_EQ(stage.CopyToHost(tensor.bytes, absl::MakeSpan(host)), absl::OkStatus());
  EXPECT_TRUE(std::ranges::equal(host, tensor.bytes));
  std::ranges::fill(host, std::byte{0x3F});
  EXPECT_EQ(stage.CopyFromHost(host, tensor.bytes), absl::OkStatus());
  EXPECT_TRUE(std::ranges::equal(host, tensor.bytes));
  const absl::Span<std::byte> half = tensor.bytes.subspan(0, tensor.bytes.size() / 2);
  std::ranges::fill(half, std::byte{0});
  EXPECT_EQ(stage.CopyWithin(half, tensor.bytes.subspan(half.size(), half.size())),
            absl::OkStatus());
  EXPECT_TRUE(
      std::ranges::all_of(tensor.bytes, [](std::byte byte) { return byte == std::byte{}; }));
  EXPECT_GE(OtherDeviceCalls(), calls + 3) << "not by the device";
}

// As CUDA's do, where the CPU's take them.
TEST(OtherDeviceNormKernels, RefuseVectorsOfAnotherType) {
  const auto norm = [](const at::TensorOptions& there, at::ScalarType vectors) {
    const at::Tensor x = at::ones({2, 8}, there.dtype(at::kBFloat16));
    const at::Tensor weight = at::ones({8}, there.dtype(vectors));
    return at::layer_norm(x, {8}, weight, weight, 1e-5);
  };
  const at::TensorOptions there(ToDevice(kOtherDevice));
  EXPECT_ANY_THROW(norm(there, at::kFloat));
  EXPECT_EQ(norm(there, at::kBFloat16).scalar_type(), at::kBFloat16);
  EXPECT_EQ(norm(at::TensorOptions(at::kCPU), at::kFloat).scalar_type(), at::kBFloat16);
}

// That tensors of two devices do not mix is what makes the tests above tell anything.
TEST(OtherDeviceTensors, DoNotMixWithTheCpus) {
  const at::Tensor there = at::ones({4}, at::TensorOptions(ToDevice(kOtherDevice)));
  EXPECT_EQ(there.device().type(), at::kPrivateUse1);
  EXPECT_TRUE(at::equal((there + there).cpu(), at::full({4}, 2.0)));
  const auto on_both = [&] { return at::matmul(at::ones({4, 4}), there.view({4, 1})); };
  EXPECT_ANY_THROW(on_both());
}

}  // namespace
}  // namespace siphon
