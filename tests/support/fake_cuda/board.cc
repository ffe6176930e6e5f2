#include "tests/support/fake_cuda/board.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>

#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/state.h"

namespace siphon::fake_cuda {
namespace {

constexpr int kEntries = 4096;
// What the driver takes memory in.
constexpr int64_t kGranule = 512;

std::mutex& BoardMutex() {
  static auto* const mutex = new std::mutex();
  return *mutex;
}

bool IsAlive(int32_t pid) { return kill(pid, 0) == 0 || errno != ESRCH; }

}  // namespace

struct Board::Books {
  int64_t serials;
  Entry entries[kEntries];
};

class Board::Locked {
 public:
  explicit Locked(Board& board) : board_(board), lock_(BoardMutex()) {
    flock(board_.file_, LOCK_EX);
    for (Entry& entry : board_.books_->entries) {
      if (entry.pid == 0 || entry.host != Host() || IsAlive(entry.pid)) continue;
      unlink(board_.FileOf(entry.serial).c_str());
      entry = Entry();
    }
  }
  ~Locked() { flock(board_.file_, LOCK_UN); }
  Entry* Find(int64_t serial) {
    for (Entry& entry : board_.books_->entries) {
      if (entry.pid != 0 && entry.serial == serial) return &entry;
    }
    return nullptr;
  }
  Entry* FindFree() {
    for (Entry& entry : board_.books_->entries) {
      if (entry.pid == 0) return &entry;
    }
    return nullptr;
  }
  int64_t Used(int device) {
    int64_t used = 0;
    for (const Entry& entry : board_.books_->entries) {
      const bool is_there = entry.pid != 0 && entry.host == Host() && entry.device == device;
      if (is_there) used += entry.bytes;
    }
    return used;
  }

 private:
  Board& board_;
  std::lock_guard<std::mutex> lock_;
};

void RemoveOwnDirectory() {
  Board& board = Board::The();
  std::error_code ignored;
  // Children that were forked leave it alone.
  if (board.owner_ == getpid()) std::filesystem::remove_all(board.directory_, ignored);
}

// Never destroyed: streams' threads may outlive static objects.
Board& Board::The() {
  static Board* const board = new Board();
  return *board;
}

uint64_t Board::Host() {
  static const uint64_t host = [] {
    char name[256] = "";
    gethostname(name, sizeof(name) - 1);
    struct stat numbers = {};
    stat("/proc/self/ns/pid", &numbers);
    return std::hash<std::string>()(name + ("/" + std::to_string(numbers.st_ino)));
  }();
  return host;
}

Board::Board() {
  if (std::getenv("SIPHON_FAKE_CUDA_DIR") != nullptr) Open();
}

bool Board::IsOpen() {
  const std::lock_guard lock(BoardMutex());
  return books_ != nullptr;
}

void Board::Open() {
  const std::lock_guard lock(BoardMutex());
  if (books_ != nullptr) return;
  if (const char* const given = std::getenv("SIPHON_FAKE_CUDA_DIR"); given != nullptr) {
    directory_ = given;
  } else {
    directory_ = "/dev/shm/siphon-fake-cuda-XXXXXX";
    if (mkdtemp(directory_.data()) != nullptr) {
      owner_ = getpid();
      std::atexit(RemoveOwnDirectory);
    }
  }
  file_ = open((directory_ + "/board").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* books = MAP_FAILED;
  if (file_ >= 0 && ftruncate(file_, sizeof(Books)) == 0) {
    books = mmap(nullptr, sizeof(Books), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  }
  if (books == MAP_FAILED) {
    std::fprintf(stderr, "fake CUDA: no room for its books in %s\n", directory_.c_str());
    std::abort();
  }
  books_ = static_cast<Books*>(books);
}

const std::string& Board::directory() {
  Open();
  return directory_;
}

std::string Board::FileOf(int64_t serial) const {
  return directory_ + "/memory." + std::to_string(serial);
}

bool Board::MakeFile(const Entry& entry) const {
  const std::string path = FileOf(entry.serial);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return false;
  // A full /dev/shm shows here, and not as a SIGBUS later.
  const bool has_room = posix_fallocate(file, 0, entry.bytes) == 0;
  close(file);
  if (!has_room) unlink(path.c_str());
  return has_room;
}

std::optional<Board::Entry> Board::Take(int device, size_t bytes, Use use) {
  Open();
  Locked locked(*this);
  const int64_t rounded = (static_cast<int64_t>(bytes) + kGranule - 1) / kGranule * kGranule;
  if (locked.Used(device) + rounded > TheState().memory) return std::nullopt;
  Entry* const free = locked.FindFree();
  if (free == nullptr) return std::nullopt;
  const Entry entry{.serial = ++books_->serials,
                    .host = Host(),
                    .pid = getpid(),
                    .device = device,
                    .bytes = rounded};
  if (use == Use::kData && !MakeFile(entry)) return std::nullopt;
  *free = entry;
  return entry;
}

int64_t Board::GiveBack(int64_t serial) {
  if (!IsOpen()) return 0;
  Locked locked(*this);
  Entry* const entry = locked.Find(serial);
  if (entry == nullptr) return 0;
  const int64_t openers = entry->openers;
  unlink(FileOf(serial).c_str());
  *entry = Entry();
  return openers;
}

bool Board::ChangeOpeners(int64_t serial, int change) {
  if (!IsOpen()) return false;
  Locked locked(*this);
  Entry* const entry = locked.Find(serial);
  if (entry == nullptr) return false;
  entry->openers += change;
  return true;
}

size_t Board::Free(int device) {
  int64_t free = TheState().memory;
  if (IsOpen()) free -= Locked(*this).Used(device);
  return free > 0 ? static_cast<size_t>(free) : 0;
}

}  // namespace siphon::fake_cuda

extern "C" const char* siphon_fake_cuda_directory() {
  return siphon::fake_cuda::Board::The().directory().c_str();
}
