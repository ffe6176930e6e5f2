// Requests where io_uring is forbidden, and where a drive does not answer.

#include "swap/device/nvme_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "swap/device/nvme_parking.h"
#include "tests/swap/device/scratch_drive.h"

namespace siphon {
namespace {

TEST(NvmeIo, TakesThreadsWhereNothingElseIsToBeHad) {
  const ScratchDrive drive;
  const auto file = NvmeFile::Make(drive.File(1));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto any = MakeNvmeIo(NvmeIoKind::kAny, file->fd(), 4);
  ASSERT_TRUE(any.ok()) << any.status();
  const auto ring = MakeNvmeIo(NvmeIoKind::kUring, file->fd(), 4);
  EXPECT_EQ((*any)->name(), ring.ok() ? "io_uring" : "threads");
  EXPECT_TRUE(ring.ok() || absl::IsUnavailable(ring.status())) << ring.status();
  // More entries than any kernel gives a ring.
  EXPECT_TRUE(absl::IsUnavailable(MakeNvmeIo(NvmeIoKind::kUring, file->fd(), 1 << 20).status()));
  EXPECT_EQ((*MakeNvmeIo(NvmeIoKind::kAny, file->fd(), 1 << 20))->name(), "threads");
}

// Refuses io_uring to this process from now on, as filters of containers do.
bool ForbidUring(int error) {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(steps), .filter = steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// In a process of its own; 0: parked by threads and brought back, 77: filters are not to be had.
int ParkWithoutUring(int error) {
  if (!ForbidUring(error)) return 77;
  const ScratchDrive drive;
  if (MakeNvmeIo(NvmeIoKind::kUring, 0, 1).ok()) return 1;
  const auto parking =
      NvmeParking::Make({.file = drive.File(50'000), .mover = {.buffer = Bytes(2 * kNvmeBlock)}});
  if (!parking.ok() || !absl::StrContains((*parking)->Text(), "threads")) return 2;
  Dice dice(1);
  const std::vector<std::byte> memory = DiceBytes(dice, 50'000);
  std::vector<std::byte> back(memory.size());
  const CopySide<std::byte> place = (*parking)->bytes().subspan(0, memory.size());
  const std::vector<CopyPart> out = {{absl::MakeConstSpan(memory), place, CopyLinkId(0)}};
  const std::vector<CopyPart> in = {{place, absl::MakeSpan(back), CopyLinkId(0)}};
  if (!(*parking)->Move(CopyLane::kOut, out).ok()) return 3;
  return (*parking)->Move(CopyLane::kIn, in).ok() && back == memory ? 0 : 4;
}

TEST(NvmeIo, DoesWithoutWhatAFilterForbids) {
  for (const int error : {EPERM, ENOSYS}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(ParkWithoutUring(error));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "skipped, because filters are not to be had";
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

// Memory that whoever writes to it waits for until it is let go: a read into it hangs as on a drive
// that does not answer.
class HangingMemory {
 public:
  HangingMemory() {
    fd_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
    uffdio_api api{.api = UFFD_API};
    if (fd_ < 0 || ioctl(fd_, UFFDIO_API, &api) != 0) return;
    memory_ = mmap(nullptr, kNvmeBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uffdio_register wanted{.range = Range(), .mode = UFFDIO_REGISTER_MODE_MISSING};
    hangs_ = ioctl(fd_, UFFDIO_REGISTER, &wanted) == 0;
  }
  ~HangingMemory() {
    if (fd_ >= 0) close(fd_);  // and the memory is as any other
  }
  HangingMemory(const HangingMemory&) = delete;
  HangingMemory& operator=(const HangingMemory&) = delete;
  bool hangs() const { return hangs_; }
  absl::Span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), kNvmeBlock}; }
  void LetGo() {
    uffdio_zeropage zeros{.range = Range()};
    EXPECT_EQ(ioctl(fd_, UFFDIO_ZEROPAGE, &zeros), 0);
  }

 private:
  uffdio_range Range() const {
    return {.start = reinterpret_cast<uintptr_t>(memory_), .len = kNvmeBlock};
  }
  int fd_ = -1;
  void* memory_ = nullptr;
  bool hangs_ = false;
};

TEST(NvmeIo, LeavesAloneAThreadThatADriveDoesNotLetGo) {
  HangingMemory memory;
  if (!memory.hangs()) GTEST_SKIP() << "skipped, because userfaultfd is not to be had";
  const ScratchDrive drive;
  const auto file = NvmeFile::Make(drive.File(kNvmeBlock, NvmeFileOptions::Direct::kNever));
  ASSERT_TRUE(file.ok()) << file.status();
  {
    const auto io = MakeNvmeIo(NvmeIoKind::kThreads, file->fd(), 2);
    ASSERT_TRUE(io.ok()) << io.status();
    std::vector<std::byte> well(100);
    ASSERT_TRUE((*io)->Start({.offset = 0, .buffer = memory.bytes(), .tag = 0}).ok());
    ASSERT_TRUE((*io)->Start({.offset = 0, .buffer = absl::MakeSpan(well), .tag = 1}).ok());
    const auto done = (*io)->Next(Nanos(10'000'000'000));
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_EQ(done->tag, 1);
    EXPECT_EQ(done->result, 100);
    EXPECT_TRUE(absl::IsDeadlineExceeded((*io)->Next(Nanos(1'000'000)).status()));
  }
  memory.LetGo();
}

}  // namespace
}  // namespace siphon
