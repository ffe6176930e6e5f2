// LibTorch's own allocator and streams for CUDA (libc10_cuda) through the module siphon_torch_cuda,
// on the fake runtime, or with SIPHON_GPU=1 on a device. Kernels are another library's, which needs
// a device: tests/gpu.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/torch/aten.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/device/load_torch_cuda.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "planner/status.h"
#include "tests/support/fake_cuda/fake_control.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr size_t kMebibyte = 1 << 20;

const TorchCudaModule& TheModule() {
  static const TorchCudaModule* const module = [] {
    const char* const elsewhere = std::getenv("SIPHON_TORCH_CUDA_MODULE");
    const auto loaded = LoadTorchCuda(elsewhere == nullptr ? SIPHON_TORCH_CUDA_BUILT : elsewhere);
    SIPHON_CHECK(loaded.ok(), loaded.status().message());
    return *loaded;
  }();
  return *module;
}

class TorchCuda : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(FakeCuda::IsThere(), FakeCuda::IsGpuWanted())
        << "LD_PRELOAD the fake libcudart, or set SIPHON_GPU=1 without it";
    auto opened = TheModule().Open(0, TorchKernels::kLeaveOut);
    ASSERT_TRUE(opened.ok()) << opened.status();
    device_ = *std::move(opened);
  }
  // As tensors take it.
  static c10::DataPtr Take(size_t bytes) {
    return c10::GetAllocator(c10::DeviceType::CUDA)->allocate(bytes);
  }

  std::unique_ptr<TorchDevice> device_;
};

TEST_F(TorchCuda, CountsWhatTensorsTake) {
  const TorchMemory before = device_->memory();
  {
    const c10::DataPtr tensor = Take(3 * kMebibyte);
    EXPECT_EQ(tensor.device(), c10::Device(c10::DeviceType::CUDA, 0));
    EXPECT_EQ(device_->memory().in_use - before.in_use, Bytes(3 * kMebibyte));
    EXPECT_GE(device_->memory().held, device_->memory().in_use);
  }
  EXPECT_EQ(device_->memory().in_use, before.in_use);
  EXPECT_GE(device_->memory().peak, before.in_use + Bytes(3 * kMebibyte));
  device_->ResetPeak();
  EXPECT_EQ(device_->memory().peak, before.in_use);
}

TEST_F(TorchCuda, NeverHoldsMoreThanItsLimit) {
  constexpr Bytes kLimit(128 * kMebibyte);
  // Of several in one segment, and of one that needs a little more than a segment, or a piece of a
  // growing one.
  for (const size_t each : {4 * kMebibyte, 21 * kMebibyte}) {
    ASSERT_EQ(device_->Limit(kLimit), absl::OkStatus());
    device_->ResetPeak();
    std::vector<c10::DataPtr> tensors;
    const absl::Status filled = CallTorch("filling the device", [&] {
      for (int tensor = 0; tensor < 100; ++tensor) tensors.push_back(Take(each));
    });
    EXPECT_EQ(filled.code(), absl::StatusCode::kResourceExhausted) << filled;
    EXPECT_GE(tensors.size() * each, 80 * kMebibyte) << "some of it is between blocks";
    EXPECT_LE(device_->memory().peak_held, kLimit);
    EXPECT_EQ(device_->Limit(Bytes(40 * kMebibyte)).code(), absl::StatusCode::kResourceExhausted);
    tensors.clear();
    ASSERT_EQ(device_->Limit(Bytes(48 * kMebibyte)), absl::OkStatus()) << "what is free goes back";
    EXPECT_EQ(device_->memory().held, Bytes(0));
  }
  const auto take = [](size_t bytes) { return CallTorch("taking", [&] { Take(bytes); }); };
  EXPECT_EQ(take(56 * kMebibyte).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(take(kMebibyte), absl::OkStatus());
  EXPECT_EQ(device_->Limit(Bytes(kMebibyte * kMebibyte)), absl::OkStatus()) << "all there is";
  EXPECT_EQ(take(16 * kMebibyte), absl::OkStatus());
}

// Beyond the limit is one thing, less on the device than the limit says another.
TEST_F(TorchCuda, TellsWhereSomebodyElseHasTheMemory) {
  if (!FakeCuda::IsThere()) GTEST_SKIP() << "skipped, because nobody else is on the device";
  const auto take = [](size_t bytes) { return CallTorch("taking", [&] { Take(bytes); }); };
  ASSERT_EQ(device_->Limit(Bytes(64 * kMebibyte)), absl::OkStatus());
  EXPECT_FALSE(device_->shortage().has_value());
  EXPECT_EQ(take(65 * kMebibyte).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(device_->shortage().has_value()) << "it would not fit into the limit";
  const auto arena_elsewhere = 30 * kMebibyte;
  FakeCuda::Set("memory", static_cast<int64_t>(64 * kMebibyte - arena_elsewhere));
  EXPECT_EQ(take(40 * kMebibyte).code(), absl::StatusCode::kResourceExhausted);
  FakeCuda::Reset();
  const std::optional<DeviceShortage> shortage = device_->shortage();
  ASSERT_TRUE(shortage.has_value());
  EXPECT_EQ(shortage->asked, Bytes(40 * kMebibyte));
  EXPECT_EQ(shortage->limit, Bytes(64 * kMebibyte));
  EXPECT_EQ(shortage->free, Bytes(34 * kMebibyte));
}

// What is freed while the stream works may be taken again at once: the stream's order protects it.
TEST_F(TorchCuda, ReusesMemoryInTheOrderOfTheStream) {
  void* first = nullptr;
  {
    const c10::DataPtr tensor = Take(2 * kMebibyte);
    first = tensor.get();
  }
  EXPECT_EQ(Take(2 * kMebibyte).get(), first);
}

TEST_F(TorchCuda, ComputesOnAStreamOfItsOwn) {
  const auto current = [] {
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    return guard.getStream(c10::Device(c10::DeviceType::CUDA, 0));
  };
  ASSERT_TRUE(device_->work_stream().has_value());
  EXPECT_NE(*device_->work_stream(), nullptr);
  const c10::Stream here = current();
  std::thread([&] { EXPECT_NE(current(), here) << "the default stream"; }).join();
  device_ = nullptr;
  EXPECT_NE(current(), here);
}

// Wherever a layer ends: cuBLASLt chooses kernels by it.
TEST_F(TorchCuda, BoundariesStartWhereTheyDoInABlockOfTheirOwn) {
  c10::Storage block(c10::Storage::use_byte_size_t(), kMebibyte, Take(kMebibyte),
                     /*allocator=*/nullptr, /*resizable=*/false);
  const auto view_at = [&block](int64_t bytes) {
    at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(block), c10::DispatchKeySet(c10::DispatchKey::CUDA),
        caffe2::TypeMeta::Make<float>());
    view.unsafeGetTensorImpl()->set_sizes_and_strides(at::IntArrayRef{8}, at::IntArrayRef{1},
                                                      bytes / 4);
    return view;
  };
  for (const int64_t bytes : {0, 256, 512}) {
    EXPECT_EQ(ContiguousAligned(view_at(bytes)).storage_offset(), bytes / 4);
  }
  // A copy would be made; its kernels are not there.
  for (const int64_t bytes : {4, 64, 128}) {
    EXPECT_THROW(ContiguousAligned(view_at(bytes)), c10::Error) << bytes;
  }
}

TEST(TorchCudaRefuses, WhatIsNotThereInALine) {
  const auto problem = [](int device) {
    return std::string(TheModule().Open(device, TorchKernels::kLeaveOut).status().message());
  };
  EXPECT_THAT(problem(99), HasSubstr("no CUDA: there is no device 99, there are "));
  EXPECT_THAT(problem(99), HasSubstr("(pipeline.backend: cpu)"));
  if (!FakeCuda::IsThere()) GTEST_SKIP() << "skipped, because a device does not go away";
  for (const int devices : {0, -1}) {
    FakeCuda::Set("devices", devices);
    EXPECT_THAT(problem(0), HasSubstr("no CUDA: "));
    EXPECT_THAT(problem(0), HasSubstr("(pipeline.backend: cpu)"));
    EXPECT_THAT(problem(0), Not(HasSubstr("\n")));
  }
  FakeCuda::Reset();
}

// The kernels come with libraries that a set-up for the CPU leaves out, and need a device.
TEST(TorchCudaRefuses, KernelsThatCannotBeLoadedOnTheFake) {
  if (!FakeCuda::IsThere()) GTEST_SKIP() << "skipped, because there is a device";
  const absl::Status status = TheModule().Open(0, TorchKernels::kLoad).status();
  EXPECT_FALSE(status.ok()) << "the fake runs no kernels";
  EXPECT_THAT(std::string(status.message()), HasSubstr("pip install torch=="));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
}

TEST(LoadTorchCuda, SaysInALineWhyThereIsNoneAndWhatIsLeft) {
  const auto problem = [](const std::string& path) {
    return std::string(LoadTorchCuda(path).status().message());
  };
  EXPECT_EQ(problem(""),
            "no CUDA: this build has no siphon_torch_cuda.so, LibTorch for CUDA was not there; "
            "workers compute on the CPU here (pipeline.backend: cpu)");
  EXPECT_THAT(problem("/nowhere/siphon_torch_cuda.so"), HasSubstr("cannot open"));
  EXPECT_THAT(problem("libc.so.6"), HasSubstr("libc.so.6 is of another version"));
  EXPECT_EQ(FindTorchCudaModule(""), "");
  if (!FakeCuda::IsThere()) return;  // on a machine that it was taken to
  EXPECT_EQ(FindTorchCudaModule(SIPHON_CUDA_MODULE), SIPHON_TORCH_CUDA_BUILT);
}

}  // namespace
}  // namespace siphon
