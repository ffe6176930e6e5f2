// The recorder as a driver loads it, on a CUPTI that delivers records made by hand.

#include <cupti.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/fake_cupti/fake_cupti.h"

namespace siphon {
namespace {

using testing::ElementsAre;

#if CUPTI_API_VERSION >= 130000
using CopyRecord = CUpti_ActivityMemcpy6;
using KernelRecord = CUpti_ActivityKernel10;
#else
using CopyRecord = CUpti_ActivityMemcpy5;
using KernelRecord = CUpti_ActivityKernel9;
#endif

template <typename Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

template <typename Record>
Record At(uint64_t start, uint64_t end, CUpti_ChannelType channel) {
  Record record = {};
  record.start = start;
  record.end = end;
  record.deviceId = 2;
  record.streamId = 17;
  record.channelID = 5;
  record.channelType = channel;
  return record;
}

CopyRecord Copy(CUpti_ActivityMemcpyKind kind, uint64_t bytes) {
  auto record = At<CopyRecord>(100, 200, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY);
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.copyKind = static_cast<uint8_t>(kind);
  record.bytes = bytes;
  return record;
}

TEST(ActivityRecorder, WritesCopiesAndKernelsWithTheirEngines) {
  void* const cupti = dlopen(SIPHON_FAKE_CUPTI, RTLD_NOW);  // by its name, the recorder's too
  ASSERT_NE(cupti, nullptr) << dlerror();
  void* const recorder = dlopen(SIPHON_ACTIVITY_RECORDER, RTLD_NOW);
  ASSERT_NE(recorder, nullptr) << dlerror();
  const auto start = Find<int()>(recorder, "InitializeInjection");
  const auto flush = Find<void()>(recorder, "siphon_activity_flush");
  const auto add = Find<decltype(siphon_fake_cupti_add)>(cupti, "siphon_fake_cupti_add");
  const auto enabled =
      Find<decltype(siphon_fake_cupti_enabled)>(cupti, "siphon_fake_cupti_enabled");
  const auto limit = Find<decltype(siphon_fake_cupti_limit)>(cupti, "siphon_fake_cupti_limit");

  unsetenv("SIPHON_ACTIVITY_FOLDER");
  EXPECT_EQ(start(), 0) << "it has nowhere to write";
  const std::string folder = testing::TempDir() + "/siphon_recorder" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  setenv("SIPHON_ACTIVITY_FOLDER", folder.c_str(), 1);
  ASSERT_EQ(start(), 1);
  EXPECT_TRUE(enabled(CUPTI_ACTIVITY_KIND_MEMCPY));
  EXPECT_TRUE(enabled(CUPTI_ACTIVITY_KIND_MEMCPY2));
  EXPECT_TRUE(enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_FALSE(enabled(CUPTI_ACTIVITY_KIND_KERNEL)) << "it would run kernels one by one";

  const auto put = [add](const auto& record) { add(&record, sizeof(record)); };
  put(Copy(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, 8 << 20));
  put(Copy(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, 64));
  put(Copy(CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, 1));
  put(Copy(CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, 2));
  auto peer = At<CUpti_ActivityMemcpyPtoP4>(150, 250, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY);
  peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  peer.bytes = 32 << 20;
  put(peer);
  auto kernel = At<KernelRecord>(90, 300, CUPTI_CHANNEL_TYPE_COMPUTE);
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  put(kernel);
  kernel.end = 0;  // it runs still
  put(kernel);
  CUpti_ActivityMemset4 other = {};
  other.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  put(other);
  limit(3);  // several buffers
  flush();
  testing::internal::CaptureStderr();
  EXPECT_EQ(start(), 0) << "the records are another's already";
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "siphon: no records of the device: libcupti.so." SIPHON_CUDA_MAJOR ": the fake's\n");

  std::ifstream file(folder + "/" + std::to_string(getpid()) + ".activity");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  EXPECT_THAT(lines, ElementsAre("to_device copy_engine 2 5 17 8388608 100 200",
                                 "to_host copy_engine 2 5 17 64 100 200",
                                 "within_device copy_engine 2 5 17 1 100 200",
                                 "other_copy copy_engine 2 5 17 2 100 200",
                                 "to_peer copy_engine 2 5 17 33554432 150 250",
                                 "kernel compute 2 5 17 0 90 300"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace siphon
