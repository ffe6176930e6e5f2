// Memory that one process lends and another one copies to and from, on the same device and on
// another one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "swap/memory_checksum.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/swap/device/backend_rig.h"
#include "tests/swap/device/cuda_rig.h"
#include "tests/swap/device/line_process.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using Where = BackendRig::Where;

// The variable: on a machine that the programs were taken to.
std::string ProgramOf(const char* variable, const char* built) {
  const char* const elsewhere = std::getenv(variable);
  return elsewhere == nullptr ? built : elsewhere;
}

class LenderProcess : public LineProcess {
 public:
  LenderProcess(int device, int64_t bytes)
      : LineProcess(ProgramOf("SIPHON_CUDA_LENDER", SIPHON_CUDA_LENDER), {device, bytes}),
        handle_(absl::HexStringToBytes(Line())) {}
  const std::string& handle() const { return handle_; }

 private:
  std::string handle_;
};

class CudaProcesses : public testing::Test {
 protected:
  void SetUp() override {
    SIPHON_SKIP_WITHOUT_RIG();
    if (FakeCuda::IsThere()) FakeCuda::Reset();
    rig_ = MakeRig();
    devices_ = static_cast<int>(TheCudaModule().Devices()->size());
  }
  std::unique_ptr<BackendRig> rig_;
  int devices_ = 1;
};

// Pushed and pulled by who owns the data, several times at once; the lender does nothing, and sees
// every byte.
TEST_F(CudaProcesses, ParkInOneAnothersMemory) {
  for (int device = 0; device < std::min(devices_, 2); ++device) {
    constexpr size_t kBytes = 2 << 20;
    LenderProcess lender(device, kBytes);
    auto opened = TheCudaModule().OpenArena(0, lender.handle());
    ASSERT_TRUE(opened.ok()) << opened.status();
    const absl::Span<std::byte> there = (*opened)->memory();
    ASSERT_EQ(there.size(), kBytes);
    const auto backend = rig_->MakeBackend({.links = 2, .chunk = 300'000});
    const absl::Span<std::byte> from = rig_->Take(Where::kWorker, kBytes);
    const absl::Span<std::byte> back = rig_->Take(Where::kWorker, kBytes);
    for (uint64_t round = 1; round <= 3; ++round) {
      const std::vector<std::byte> pattern = RigPattern(kBytes, round);
      rig_->Write(from, pattern);
      std::vector<CopyPart> out, in;
      for (size_t part = 0; part < 4; ++part) {
        const size_t begin = part * kBytes / 4;
        const CopyLinkId link(static_cast<int>(part % 2));
        out.push_back({absl::Span<const std::byte>(from.subspan(begin, kBytes / 4)),
                       there.subspan(begin, kBytes / 4), link});
        in.push_back({absl::Span<const std::byte>(there.subspan(begin, kBytes / 4)),
                      back.subspan(begin, kBytes / 4), link});
      }
      const absl::Status pushed = backend->Wait(backend->StartCopy(CopyLane::kOut, out));
      ASSERT_TRUE(pushed.ok()) << pushed;
      EXPECT_EQ(lender.Ask("sum"), MemoryChecksum(pattern));
      const absl::Status pulled = backend->Wait(backend->StartCopy(CopyLane::kIn, in));
      ASSERT_TRUE(pulled.ok()) << pulled;
      EXPECT_EQ(rig_->Read(back), pattern);
    }
    // Closed before it is freed.
    *opened = nullptr;
    EXPECT_EQ(lender.Ask("free"), 0u);
    EXPECT_EQ(lender.End(), 0);
  }
}

TEST_F(CudaProcesses, TakeFromOneDevicesMemory) {
  if (!FakeCuda::IsThere()) GTEST_SKIP() << "skipped, because a device has too much memory";
  const auto take = [] { return TheCudaModule().MakeArena(0, Bytes(768 << 20)).status(); };
  {
    LenderProcess lender(0, 512 << 20);
    ASSERT_FALSE(lender.handle().empty());
    EXPECT_EQ(take().code(), absl::StatusCode::kResourceExhausted) << "of 1 GiB";
    lender.Kill();
  }
  // The dead have nothing.
  EXPECT_EQ(take(), absl::OkStatus());
}

TEST_F(CudaProcesses, CannotOpenWhatAProcessThatIsGoneHasLent) {
  if (!FakeCuda::IsThere()) GTEST_SKIP() << "skipped, because drivers promise nothing then";
  LenderProcess lender(1, 2 << 20);
  lender.Kill();
  const absl::Status gone = TheCudaModule().OpenArena(0, lender.handle()).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(gone.message()),
              testing::MatchesRegex("opening 2097152 bytes that process [0-9]+ lends on its device "
                                    "1: cudaErrorInvalidValue \\(1\\): .*"));
}

// Who opened memory twice has it twice, and closes it twice.
TEST_F(CudaProcesses, MayOpenMemorySeveralTimes) {
  LenderProcess lender(0, 2 << 20);
  auto first = TheCudaModule().OpenArena(0, lender.handle());
  auto second = TheCudaModule().OpenArena(0, lender.handle());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ((*first)->memory().data(), (*second)->memory().data());
  *first = nullptr;
  rig_->Write((*second)->memory(), RigPattern(2 << 20, 9));
  EXPECT_EQ(lender.Ask("sum"), MemoryChecksum(RigPattern(2 << 20, 9)));
}

// What the order of closing is about, so that the test above cannot pass by a fake that sees
// nothing.
TEST_F(CudaProcesses, AreCaughtWhenTheyFreeWhatIsOpen) {
  if (!FakeCuda::IsThere()) GTEST_SKIP() << "skipped, because on a device that is undefined";
  LenderProcess lender(0, 2 << 20);
  const auto opened = TheCudaModule().OpenArena(0, lender.handle());
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(lender.Ask("free"), 1u);
}

// Rings of workers, each parking at the next one, all at once: engines with full checks, on one
// device as several workers share it, and on two where there are two. A ring of one parks in its
// own memory.
TEST_F(CudaProcesses, ParkInARingAllAtOnce) {
  constexpr int kTrips = 15;
  for (const int workers : {1, 2, 4}) {
    for (int devices = 1; devices <= std::min(devices_, 2); ++devices) {
      std::vector<std::unique_ptr<LineProcess>> ring;
      std::vector<std::string> handles;
      for (int worker = 0; worker < workers; ++worker) {
        ring.push_back(std::make_unique<LineProcess>(
            ProgramOf("SIPHON_CUDA_RING_WORKER", SIPHON_CUDA_RING_WORKER),
            std::vector<int64_t>{worker % devices, kTrips, worker}));
        handles.push_back(ring.back()->Line());
        ASSERT_FALSE(handles.back().empty());
      }
      for (int worker = 0; worker < workers; ++worker) {
        ring[static_cast<size_t>(worker)]->Say(
            handles[static_cast<size_t>((worker + 1) % workers)]);
      }
      for (const auto& worker : ring) EXPECT_EQ(worker->Line(), std::to_string(kTrips));
      for (const auto& worker : ring) EXPECT_EQ(worker->Ask("close"), 0u);
      for (const auto& worker : ring) EXPECT_EQ(worker->Ask("free"), 0u);
      for (const auto& worker : ring) EXPECT_EQ(worker->End(), 0);
    }
  }
}

}  // namespace
}  // namespace siphon
