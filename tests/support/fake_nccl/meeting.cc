#include "tests/support/fake_nccl/meeting.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <functional>

#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/other_fakes.h"

namespace siphon::fake_nccl {
namespace {

// A waiter that nobody wakes looks again.
constexpr int64_t kLongestWaitNanos = 20'000'000;

std::string FileOf(const std::string& name) {
  return std::string(siphon_fake_cuda_directory()) + "/" + name;
}

long Futex(std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* time) {
  return syscall(SYS_futex, word, operation, value, time, nullptr, 0);
}

// NCCL_HOSTID names another one, as with NCCL.
uint64_t HostHash() {
  const char* const id = std::getenv("NCCL_HOSTID");
  return id == nullptr ? siphon_fake_cuda_host() : std::hash<std::string>()(id);
}

}  // namespace

std::string Meeting::Arrange() {
  static std::atomic<int64_t> serials{0};
  // Each host counts its processes.
  const std::string name = "nccl." + std::to_string(siphon_fake_cuda_host()) + "." +
                           std::to_string(getpid()) + "." + std::to_string(++serials);
  const int file = open(FileOf(name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return "";
  const bool has_room = posix_fallocate(file, 0, sizeof(Page)) == 0;
  close(file);
  return has_room ? name : "";
}

std::shared_ptr<Meeting> Meeting::Join(const std::string& name, int ranks, int rank, int device) {
  const std::string path = FileOf(name);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const mapped = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return nullptr;
  auto meeting = std::shared_ptr<Meeting>(new Meeting(static_cast<Page*>(mapped), ranks));
  Page& page = meeting->page();
  page.ranks[rank].host = HostHash();
  page.ranks[rank].device = device;
  if (++page.joined >= ranks) unlink(path.c_str());
  meeting->Ring();
  return meeting;
}

Meeting::~Meeting() { munmap(page_, sizeof(Page)); }

bool Meeting::HasTwoRanksOnOneDevice() const {
  for (int rank = 0; rank < ranks_; ++rank) {
    for (int other = 0; other < rank; ++other) {
      if (page_->ranks[rank].host == page_->ranks[other].host &&
          page_->ranks[rank].device == page_->ranks[other].device) {
        return true;
      }
    }
  }
  return false;
}

void Meeting::Ring() {
  ++page_->bell;
  Futex(&page_->bell, FUTEX_WAKE, INT_MAX, nullptr);
}

void Meeting::WaitForRing(uint32_t bell) {
  const timespec longest{.tv_sec = 0, .tv_nsec = kLongestWaitNanos};
  Futex(&page_->bell, FUTEX_WAIT, bell, &longest);
}

}  // namespace siphon::fake_nccl
