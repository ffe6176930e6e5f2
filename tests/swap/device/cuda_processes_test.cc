// Memory that one process lends and another one copies to and from, on the same device and on
// another one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "swap/memory_checksum.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/swap/device/backend_rig.h"
#include "tests/swap/device/cuda_rig.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using Where = BackendRig::Where;

// A cuda_lender that runs, with lines to and from it.
class LenderProcess {
 public:
  LenderProcess(int device, int64_t bytes) {
    int to[2];
    int from[2];
    SIPHON_CHECK(pipe(to) == 0 && pipe(from) == 0, "there are pipes");
    const std::string device_text = std::to_string(device);
    const std::string bytes_text = std::to_string(bytes);
    if (FakeCuda::IsThere()) setenv("SIPHON_FAKE_CUDA_DIR", FakeCuda::Directory().c_str(), 1);
    const char* const elsewhere = std::getenv("SIPHON_CUDA_LENDER");
    const char* const program = elsewhere == nullptr ? SIPHON_CUDA_LENDER : elsewhere;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      close(to[1]);
      close(from[0]);
      execl(program, program, device_text.c_str(), bytes_text.c_str(), nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    input_ = to[1];
    output_ = fdopen(from[0], "r");
    handle_ = absl::HexStringToBytes(Line());
  }
  ~LenderProcess() {
    if (pid_ > 0) End();
    fclose(output_);
  }
  LenderProcess(const LenderProcess&) = delete;
  LenderProcess& operator=(const LenderProcess&) = delete;

  const std::string& handle() const { return handle_; }
  uint64_t Ask(const std::string& what) {
    const std::string line = what + "\n";
    SIPHON_CHECK(write(input_, line.data(), line.size()) == static_cast<ssize_t>(line.size()),
                 "the lender reads");
    uint64_t answer = 0;
    SIPHON_CHECK(absl::SimpleAtoi(Line(), &answer), "the lender answers with a number");
    return answer;
  }
  // The exit code.
  int End() {
    close(input_);
    return Reap();
  }
  void Kill() {
    kill(pid_, SIGKILL);
    close(input_);
    Reap();
  }

 private:
  int Reap() {
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Line() {
    char line[1024] = {};
    if (fgets(line, sizeof(line), output_) == nullptr) return "";
    return std::string(absl::StripSuffix(line, "\n"));
  }

  pid_t pid_ = 0;
  int input_ = -1;
  FILE* output_ = nullptr;
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
  const Bytes before = TheCudaModule().Devices()->front().free;
  {
    LenderProcess lender(0, 6 << 20);
    ASSERT_FALSE(lender.handle().empty());
    EXPECT_EQ(before - TheCudaModule().Devices()->front().free, Bytes(6 << 20));
    lender.Kill();
  }
  // The dead have nothing.
  EXPECT_EQ(TheCudaModule().Devices()->front().free, before);
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

}  // namespace
}  // namespace siphon
