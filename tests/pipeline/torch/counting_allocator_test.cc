#include "pipeline/torch/memory/counting_allocator.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

at::Tensor Floats(int64_t bytes) { return at::empty({bytes / 4}, at::kFloat); }

class CountingAllocatorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    InstallCountingAllocator();
    SetTorchThreads(1);
  }
};

TEST_F(CountingAllocatorTest, BooksTheBytesOfLiveTensorsOnTheLedgerOfTheThread) {
  const auto outer = std::make_shared<MemoryLedger>(Bytes(0));
  const auto inner = std::make_shared<MemoryLedger>(Bytes(0));
  const at::Tensor nowhere = Floats(4096);
  {
    const LedgerScope scope(outer);
    at::Tensor first = Floats(1000);
    EXPECT_EQ(outer->used(), Bytes(1000));
    {
      const LedgerScope nested(inner);
      at::Tensor second = Floats(24);
      EXPECT_EQ(inner->used(), Bytes(24));
      first.reset();  // goes back to the books that it came from
      EXPECT_EQ(outer->used(), Bytes(0));
    }
    EXPECT_EQ(inner->used(), Bytes(0));
    const at::Tensor third = Floats(8);
    EXPECT_EQ(outer->used(), Bytes(8));
  }
  EXPECT_EQ(outer->used(), Bytes(0));
  EXPECT_EQ(outer->peak(), Bytes(1000));
}

TEST_F(CountingAllocatorTest, AlignsEveryBlock) {
  for (int64_t elements = 1; elements < 3000; elements += 7) {
    EXPECT_TRUE(IsAligned(at::empty({elements}, at::kByte).const_data_ptr())) << elements;
  }
}

TEST_F(CountingAllocatorTest, RefusesBeyondTheCapacityWithTheNumbers) {
  const auto ledger = std::make_shared<MemoryLedger>(Bytes(10000));
  const LedgerScope scope(ledger);
  const at::Tensor held = Floats(4000);
  const auto refused = CallTorch("memory for an activation", [] { return Floats(8000); });
  EXPECT_EQ(refused.status(),
            absl::ResourceExhaustedError("memory for an activation: memory is full: asked for 8000 "
                                         "bytes, 6000 bytes free of a capacity of 10000 (held: "
                                         "workspace 4000)"));
  EXPECT_EQ(ledger->used(), Bytes(4000));
  EXPECT_TRUE(CallTorch("memory", [] { return Floats(6000); }).ok());
}

TEST_F(CountingAllocatorTest, SaysWhenTheMachineItselfIsFull) {
  const auto ledger = std::make_shared<MemoryLedger>(Bytes(0));
  const LedgerScope scope(ledger);
  const auto refused = CallTorch("memory", [] { return Floats(int64_t{1} << 60); });
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.status().message(),
              testing::HasSubstr("the machine's memory is full: asked for 1152921504606846976"));
  EXPECT_EQ(ledger->used(), Bytes(0));
}

TEST_F(CountingAllocatorTest, TakesFreedBlocksAgain) {
  at::Tensor first = Floats(kMebibyte);
  const void* address = first.const_data_ptr();
  first.reset();
  EXPECT_EQ(Floats(kMebibyte).const_data_ptr(), address);
}

TEST_F(CountingAllocatorTest, KeepsLittleMoreThanWasEverInUse) {
  std::thread([] {  // a thread of its own: its cache starts empty
    int64_t most = 0;
    for (int round = 1; round <= 40; ++round) {
      // Each round asks for sizes that no earlier one used, so that nothing kept can be used again.
      std::vector<at::Tensor> tensors;
      for (int count = 0; count < 4; ++count) tensors.push_back(Floats(kMebibyte * round / 4));
      const ThreadMemory memory = CurrentThreadMemory();
      most = std::max(most, memory.in_use.value);
      EXPECT_LE(memory.in_use.value + memory.kept.value, most + most / 4 + kMebibyte) << round;
    }
    EXPECT_GT(CurrentThreadMemory().kept.value, 0);
    TrimThreadMemory();
    EXPECT_EQ(CurrentThreadMemory().kept, Bytes(0));
  })
      .join();
}

TEST_F(CountingAllocatorTest, BlocksMayBeFreedByAnyThreadAndOutliveTheirOwn) {
  const auto ledger = std::make_shared<MemoryLedger>(Bytes(0));
  std::vector<at::Tensor> tensors;
  std::thread([&] {
    const LedgerScope scope(ledger);
    for (int count = 0; count < 100; ++count) tensors.push_back(at::ones({1000}, at::kFloat));
  }).join();
  EXPECT_EQ(ledger->used(), Bytes(100 * 4000));
  for (const at::Tensor& tensor : tensors) EXPECT_EQ(tensor.sum().item<float>(), 1000.0f);
  tensors.clear();
  EXPECT_EQ(ledger->used(), Bytes(0));
}

TEST_F(CountingAllocatorTest, ManyThreadsMayPassBlocksAround) {
  constexpr int kThreads = 4;
  const auto ledger = std::make_shared<MemoryLedger>(Bytes(0));
  std::vector<std::vector<at::Tensor>> made(kThreads);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        const LedgerScope scope(ledger);
        made[(thread + round) % kThreads].clear();  // of another thread
        for (int64_t size = 1; size < 200; ++size) {
          made[(thread + round) % kThreads].push_back(at::full({size * 13}, thread, at::kFloat));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const auto& tensors : made) {
    for (const at::Tensor& tensor : tensors)
      EXPECT_EQ(tensor[0].item<float>(), tensor[-1].item<float>());
  }
  made.clear();
  EXPECT_EQ(ledger->used(), Bytes(0));
}

TEST_F(CountingAllocatorTest, TheRawInterfaceWorksToo) {  // oneDNN uses it
  const auto ledger = std::make_shared<MemoryLedger>(Bytes(0));
  const LedgerScope scope(ledger);
  c10::Allocator* allocator = c10::GetCPUAllocator();
  void* memory = allocator->raw_allocate(333);
  EXPECT_EQ(ledger->used(), Bytes(333));
  allocator->raw_deallocate(memory);
  EXPECT_EQ(ledger->used(), Bytes(0));
}

// A stage of the tiny gpt with a ledger of its own.
class StageMemory : public CountingAllocatorTest {
 protected:
  absl::StatusOr<std::unique_ptr<StageCompute>> MakeStage(int stage) {
    return MakeTorchStage(model_, CutEvenly(4, 2), StageId(stage), 1, OptimizerOptions());
  }

  static Model BuildTiny() {
    ModelOptions options = TinyGpt();
    options.dropout = 0.1;
    return *BuildModel(options);
  }

  Model model_ = BuildTiny();
  TokenBatch batch_{model_.spec, 3, 2, 5};
};

TEST_F(StageMemory, ReturnsToItsLevelAfterEachBackward) {
  const auto ledger = std::make_shared<MemoryLedger>(Bytes(0));
  const LedgerScope scope(ledger);
  for (int stage = 0; stage < 2; ++stage) {
    const auto made = MakeStage(stage);
    ASSERT_TRUE(made.ok()) << made.status();
    StageCompute& compute = **made;
    const Boundary received = stage == 0 ? Boundary::kOutputGradient : Boundary::kInput;
    const Boundary sent = stage == 0 ? Boundary::kOutput : Boundary::kInputGradient;
    const Bytes level = ledger->used();
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(compute.BeginStep(batch_.Inputs(step, StepMode::kTrain)).ok());
      for (int index = 0; index < 3; ++index) {
        const MicrobatchId microbatch(index);
        if (stage == 1) {
          ASSERT_TRUE(compute.Buffers(received, microbatch).ok());
        }
        ASSERT_TRUE(compute.Forward(microbatch).ok());
        EXPECT_GT(ledger->used(), level);
        EXPECT_EQ(compute.LiveMicrobatches(), 1);
        if (stage == 0) {
          ASSERT_TRUE(compute.Release(sent, microbatch).ok());
          ASSERT_TRUE(compute.Buffers(received, microbatch).ok());
        }
        ASSERT_TRUE(compute.Backward(microbatch).ok());
        if (stage == 1) {
          ASSERT_TRUE(compute.Release(sent, microbatch).ok());
        }
        EXPECT_EQ(ledger->used(), level) << "step " << step << " microbatch " << index;
        EXPECT_EQ(compute.LiveMicrobatches(), 0);
      }
      ASSERT_TRUE(compute.SharedGradients().ok());
      ASSERT_TRUE(compute.AddSharedGradients().ok());
      ASSERT_TRUE(compute.GradientNorms().ok());
      ASSERT_TRUE(compute.Step({.update = step + 1, .learning_rate = 1e-3}).ok());
      EXPECT_EQ(ledger->used(), level);
    }
  }
  EXPECT_EQ(ledger->used(), Bytes(0));
}

// A gpt block alone on its stage, microbatch of 2 x 8 tokens, hidden 16. Between the halves of its
// backward it keeps, in floats a token: of both layer norms x (16), mean and deviation (2) and dY
// (16); of the projections to qkv, of attention, up and down x (16, 16, 16, 64) and dY (48, 16, 64,
// 16). Not the graph: no mask, no scores, nothing of the activation, and no output.
TEST_F(StageMemory, BetweenTheHalvesOfABackwardStayInputsAndOutputGradientsOfParameterOperators) {
  for (const double dropout : {0.0, 0.1}) {
    ModelOptions options = TinyGpt();
    options.dropout = dropout;
    const Model model = *BuildModel(options);
    const auto ledger = std::make_shared<MemoryLedger>(Bytes(0));
    const LedgerScope scope(ledger);
    const auto made = MakeTorchStage(model, CutEvenly(4, 4), StageId(1), 1, OptimizerOptions());
    ASSERT_TRUE(made.ok()) << made.status();
    StageCompute& compute = **made;
    ASSERT_TRUE(compute.BeginStep(batch_.Inputs(0, StepMode::kTrain)).ok());
    const Bytes level = ledger->used();
    const Bytes kept(int64_t{2 * 8} *
                     (2 * (16 + 2 + 16) + (16 + 16 + 16 + 64) + (48 + 16 + 64 + 16)) * 4);
    for (int index = 0; index < 3; ++index) {
      const MicrobatchId microbatch(index);
      ASSERT_TRUE(compute.Buffers(Boundary::kInput, microbatch).ok());
      ASSERT_TRUE(compute.Forward(microbatch).ok());
      ASSERT_TRUE(compute.Release(Boundary::kOutput, microbatch).ok());
      ASSERT_TRUE(compute.Buffers(Boundary::kOutputGradient, microbatch).ok());
      ASSERT_TRUE(compute.BackwardInput(microbatch).ok());
      ASSERT_TRUE(compute.Release(Boundary::kInputGradient, microbatch).ok());
      EXPECT_EQ(ledger->used(), level + kept * (index + 1)) << "dropout " << dropout;
    }
    for (int index = 0; index < 3; ++index) {
      ASSERT_TRUE(compute.BackwardWeight(MicrobatchId(index)).ok());
      EXPECT_EQ(ledger->used(), level + kept * (2 - index)) << "dropout " << dropout;
    }
  }
}

TEST_F(StageMemory, EvaluationKeepsNothingButTheOutput) {
  const auto ledger = std::make_shared<MemoryLedger>(Bytes(0));
  const LedgerScope scope(ledger);
  const auto made = MakeStage(0);
  ASSERT_TRUE(made.ok()) << made.status();
  const Bytes level = ledger->used();
  ASSERT_TRUE((*made)->BeginStep(batch_.Inputs(0, StepMode::kEvaluate)).ok());
  ASSERT_TRUE((*made)->Forward(MicrobatchId(0)).ok());
  const Bytes output = SizeOf(Batched(model_.spec.layers[1].outputs[0], 2));
  EXPECT_EQ(ledger->used(), level + output);
  ASSERT_TRUE((*made)->Release(Boundary::kOutput, MicrobatchId(0)).ok());
  EXPECT_EQ(ledger->used(), level);
}

TEST_F(StageMemory, AFullWorkerSaysWhereAndHowMuch) {
  const auto unlimited = std::make_shared<MemoryLedger>(Bytes(0));
  {
    const LedgerScope scope(unlimited);
    ASSERT_TRUE(MakeStage(0).ok());
  }
  const Bytes room_for_activations(1000);
  const auto ledger = std::make_shared<MemoryLedger>(unlimited->peak() + room_for_activations);
  const LedgerScope scope(ledger);
  const auto made = MakeStage(0);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE((*made)->BeginStep(batch_.Inputs(0, StepMode::kTrain)).ok());
  const absl::Status refused = (*made)->Forward(MicrobatchId(0));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(refused.message()),
      testing::MatchesRegex(
          "layer transformer.embeddings, microbatch 0: forward: memory is full: asked for "
          "1024 bytes, [0-9]+ bytes free of a capacity of [0-9]+ .held: parameters [0-9]+.*"));
  EXPECT_LE(ledger->peak(), ledger->capacity());

  const auto tiny = std::make_shared<MemoryLedger>(Bytes(5000));
  const LedgerScope tiny_scope(tiny);
  EXPECT_THAT(MakeStage(0).status().message(),
              testing::HasSubstr("memory for the parameters of stage 0: memory is full"));
  EXPECT_EQ(tiny->used(), Bytes(0));
}

}  // namespace
}  // namespace siphon
