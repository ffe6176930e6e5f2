#include "launch/process/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/process/exit_codes.h"
#include "launch/process/shared_text.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr uint64_t kMagic = 0x5349'5048'4f4e'0004;  // "SIPHON", layout 4
constexpr size_t kPage = 4096;
constexpr int kMaxRanks = 1 << 16;
constexpr size_t kNoteBytes = 4096;  // a path
constexpr int kNotes = 3;

// Written once by one process, then published by its index; never changed afterwards.
struct FailureRecord {
  std::atomic<int32_t> taken;
  int32_t rank;
  int32_t kind;
  int32_t code;
  int32_t exit_code;
  SharedText<64> action;
  SharedText<3072> message;
};

}  // namespace

struct alignas(kPage) Board::Slot {
  std::atomic<int64_t> pid;
  std::atomic<int64_t> start_ticks;
  std::atomic<int64_t> beats;
  std::atomic<int64_t> actions;
  std::atomic<int64_t> waits;
  std::atomic<int32_t> state;
  std::atomic<int32_t> elsewhere;
  SharedText<64> action;
  FailureRecord
      records[2];  // by FailureKind: this rank's own failure, and a loss that this process declared
};

// Zero-filled memory is a valid empty board but for the first two members.
struct alignas(kPage) Board::Shared {
  std::atomic<uint64_t> magic;
  int32_t ranks;
  std::atomic<int32_t> stop_requested;
  std::atomic<int32_t> report_claimed;
  // 0, or 1 + 2 * slot + kind of the record that won. The last slot is the parent's.
  std::atomic<int32_t> first_failure;
  SharedText<kNoteBytes> notes[kNotes];

  Slot* slots() { return reinterpret_cast<Slot*>(this + 1); }
  static size_t Bytes(int ranks) { return sizeof(Shared) + sizeof(Slot) * (ranks + 1); }
};

absl::StatusOr<std::unique_ptr<Board>> Board::Map(int file, std::string path, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    return absl::InternalError(absl::StrCat("mapping the job's board ", path, " (", bytes,
                                            " bytes): ", std::strerror(errno)));
  }
  std::unique_ptr<Board> board(new Board);
  board->shared_ = static_cast<Shared*>(memory);
  board->bytes_ = bytes;
  board->path_ = std::move(path);
  return board;
}

absl::StatusOr<std::unique_ptr<Board>> Board::Make(int file, std::string path, int ranks) {
  const size_t bytes = Shared::Bytes(ranks);
  // Allocated now: a page that does not exist later would be a SIGBUS.
  if (const int error = posix_fallocate(file, 0, static_cast<off_t>(bytes)); error != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("making the job's board ", path, " of ", bytes,
                                                     " bytes: ", std::strerror(error)));
  }
  SIPHON_ASSIGN_OR_RETURN(std::unique_ptr<Board> board, Map(file, std::move(path), bytes));
  board->shared_->ranks = ranks;
  board->shared_->magic.store(kMagic, std::memory_order_release);
  return board;
}

absl::StatusOr<std::unique_ptr<Board>> Board::Create(const std::string& path, int ranks) {
  if (ranks < 1 || ranks > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a job has 1 to ", kMaxRanks, " workers, not ", ranks));
  }
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    const std::string message =
        absl::StrCat("making the job's board ", path, ": ", std::strerror(errno));
    return errno == EEXIST ? absl::AlreadyExistsError(message) : absl::InternalError(message);
  }
  absl::StatusOr<std::unique_ptr<Board>> board = Make(file, path, ranks);
  close(file);
  if (!board.ok()) unlink(path.c_str());
  return board;
}

absl::StatusOr<std::unique_ptr<Board>> Board::CreateAnonymous(int ranks) {
  if (ranks < 1 || ranks > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a job has 1 to ", kMaxRanks, " workers, not ", ranks));
  }
  const int file = memfd_create("siphon-board", MFD_CLOEXEC);
  if (file < 0) {
    return absl::InternalError(absl::StrCat("making the job's board: ", std::strerror(errno)));
  }
  absl::StatusOr<std::unique_ptr<Board>> board =
      Make(file, absl::StrCat("/proc/", getpid(), "/fd/", file), ranks);
  if (board.ok()) {
    (*board)->file_ = file;
  } else {
    close(file);
  }
  return board;
}

absl::StatusOr<std::unique_ptr<Board>> Board::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("opening the job's board ", path, ": ", std::strerror(errno)));
  }
  struct stat info = {};
  fstat(file, &info);
  const size_t bytes = static_cast<size_t>(info.st_size);
  const auto not_a_board = [&] {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " (", bytes,
                     " bytes) is not a board of this build of siphon; are parent and workers "
                     "the same program?"));
  };
  if (bytes < Shared::Bytes(1)) {
    close(file);
    return not_a_board();
  }
  absl::StatusOr<std::unique_ptr<Board>> board = Map(file, path, bytes);
  close(file);
  if (!board.ok()) return board;
  const Shared& shared = *(*board)->shared_;
  if (shared.magic.load(std::memory_order_acquire) != kMagic || shared.ranks < 1 ||
      shared.ranks > kMaxRanks || Shared::Bytes(shared.ranks) != bytes) {
    return not_a_board();
  }
  return board;
}

Board::~Board() {
  if (shared_ != nullptr) munmap(shared_, bytes_);
  if (file_ >= 0) close(file_);
}

Board::Slot& Board::slot(int rank) const {
  SIPHON_CHECK(rank >= 0 && rank < shared_->ranks, "a rank is one of the board's");
  return shared_->slots()[rank];
}

int Board::ranks() const { return shared_->ranks; }

void Board::Enter(int rank) {
  const ProcessId self = ThisProcess();
  Slot& mine = slot(rank);
  declarer_.store(rank, std::memory_order_relaxed);
  mine.start_ticks.store(self.start_ticks, std::memory_order_relaxed);
  mine.state.store(static_cast<int32_t>(State::kRunning), std::memory_order_relaxed);
  mine.pid.store(self.pid, std::memory_order_release);
}

void Board::Beat(int rank) { slot(rank).beats.fetch_add(1, std::memory_order_relaxed); }

void Board::Wait(int rank) { slot(rank).waits.fetch_add(1, std::memory_order_relaxed); }

void Board::SetAction(int rank, absl::string_view action) {
  Slot& mine = slot(rank);
  mine.action.Store(action);
  mine.actions.fetch_add(1, std::memory_order_relaxed);
}

void Board::SetState(int rank, State state) {
  slot(rank).state.store(static_cast<int32_t>(state), std::memory_order_release);
}

bool Board::Fail(int rank, const absl::Status& cause, std::optional<int> exit_code) {
  SetState(rank, State::kFailed);
  Failure failure;
  failure.rank = rank;
  failure.kind = FailureKind::kFailed;
  failure.code = cause.code();
  failure.exit_code = exit_code.value_or(ExitCodeOf(cause));
  failure.action = action(rank);
  failure.message = std::string(cause.message());
  return Publish(rank, failure.kind, failure);
}

bool Board::DeclareLost(int rank, absl::string_view cause) {
  Failure failure;
  failure.rank = rank;
  failure.kind = FailureKind::kLost;
  failure.code = absl::StatusCode::kUnavailable;
  failure.exit_code = kExitWorkerLost;
  failure.action = action(rank);
  failure.message = std::string(cause);
  const int declarer = declarer_.load(std::memory_order_relaxed);
  return Publish(declarer < 0 ? shared_->ranks : declarer, failure.kind, failure);
}

void Board::ShowElsewhere(int rank, const Shown& shown) {
  Slot& theirs = slot(rank);
  theirs.elsewhere.store(1, std::memory_order_relaxed);
  theirs.action.Store(shown.action);
  theirs.beats.store(shown.beats, std::memory_order_relaxed);
  theirs.actions.store(shown.actions, std::memory_order_relaxed);
  theirs.waits.store(shown.waits, std::memory_order_relaxed);
  theirs.state.store(static_cast<int32_t>(shown.state), std::memory_order_release);
  theirs.pid.store(shown.pid, std::memory_order_release);
}

void Board::AddFailure(const Failure& failure) {
  if (!first_failure().has_value()) Publish(failure.rank, failure.kind, failure);
}

bool Board::Publish(int slot, FailureKind kind, const Failure& failure) {
  FailureRecord& record = shared_->slots()[slot].records[static_cast<int>(kind)];
  if (record.taken.exchange(1, std::memory_order_relaxed) != 0) return false;
  record.rank = failure.rank;
  record.kind = static_cast<int32_t>(failure.kind);
  record.code = static_cast<int32_t>(failure.code);
  record.exit_code = failure.exit_code;
  record.action.Store(failure.action);
  record.message.Store(failure.message);
  int32_t none = 0;
  return shared_->first_failure.compare_exchange_strong(none, 1 + 2 * slot + static_cast<int>(kind),
                                                        std::memory_order_acq_rel);
}

std::optional<Board::Failure> Board::first_failure() const {
  const int32_t index = shared_->first_failure.load(std::memory_order_acquire);
  if (index == 0) return std::nullopt;
  const FailureRecord& record = shared_->slots()[(index - 1) / 2].records[(index - 1) % 2];
  Failure failure;
  failure.rank = record.rank;
  failure.kind = static_cast<FailureKind>(record.kind);
  failure.code = static_cast<absl::StatusCode>(record.code);
  failure.exit_code = record.exit_code;
  failure.action = record.action.Load();
  failure.message = record.message.Load();
  return failure;
}

void Board::SetNote(Note note, absl::string_view text) {
  shared_->notes[static_cast<int>(note)].Store(text);
}

std::string Board::note(Note note) const { return shared_->notes[static_cast<int>(note)].Load(); }

bool Board::ClaimReport() { return shared_->report_claimed.exchange(1) == 0; }

void Board::RequestStop() { shared_->stop_requested.store(1, std::memory_order_relaxed); }

bool Board::stop_requested() const {
  return shared_->stop_requested.load(std::memory_order_relaxed) != 0;
}

bool Board::elsewhere(int rank) const {
  return slot(rank).elsewhere.load(std::memory_order_relaxed) != 0;
}

int64_t Board::pid(int rank) const { return process(rank).pid; }

ProcessId Board::process(int rank) const {
  const Slot& theirs = slot(rank);
  ProcessId process;
  process.pid = theirs.pid.load(std::memory_order_acquire);
  process.start_ticks = theirs.start_ticks.load(std::memory_order_relaxed);
  return process;
}

int64_t Board::beats(int rank) const { return slot(rank).beats.load(std::memory_order_relaxed); }

int64_t Board::actions(int rank) const {
  return slot(rank).actions.load(std::memory_order_relaxed);
}

int64_t Board::waits(int rank) const { return slot(rank).waits.load(std::memory_order_relaxed); }

Board::State Board::state(int rank) const {
  return static_cast<State>(slot(rank).state.load(std::memory_order_acquire));
}

std::string Board::action(int rank) const { return slot(rank).action.Load(); }

}  // namespace siphon
