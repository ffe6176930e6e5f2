#ifndef SIPHON_LAUNCH_PROCESS_BOARD_H_
#define SIPHON_LAUNCH_PROCESS_BOARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/process/process_probe.h"

namespace siphon {

// Where every process of a job shows how it is: a few pages of shared memory a rank, in a file that
// all of them (the parent of `siphon train` among them) have mapped. Read without locks. A process
// that is killed at any point leaves it usable.
//
// Thread-safety: all methods, from any thread and process; SetAction of one rank and SetNote of one
// note by one thread at a time.
class Board {
 public:
  enum class State : int32_t { kStarting, kRunning, kFinished, kStopped, kFailed };

  enum class FailureKind : int32_t { kFailed, kLost };

  struct Failure {
    int rank = 0;
    FailureKind kind = FailureKind::kFailed;
    absl::StatusCode code = absl::StatusCode::kUnknown;  // kUnavailable when lost
    int exit_code = 1;
    std::string action;   // what the rank was doing; may be empty
    std::string message;  // the cause; texts longer than about 3000 bytes are cut
  };

  // What a rank shows of itself.
  struct Shown {
    int64_t pid = 0;
    State state = State::kStarting;
    int64_t beats = 0;
    int64_t actions = 0;
    int64_t waits = 0;
    std::string action;
  };

  // What the report of a failure says about the job as a whole; empty until set.
  enum class Note {
    kSteps,          // number of the last complete step: "17"
    kCheckpoint,     // path of the last complete checkpoint
    kResumeCommand,  // what to type to continue
  };

  // Makes the file (replacing nothing: AlreadyExists) for `ranks` ranks, or maps an existing one.
  // Errors: ResourceExhausted if the file system has no room; FailedPrecondition if the file is not
  // a board of this build.
  static absl::StatusOr<std::unique_ptr<Board>> Create(const std::string& path, int ranks);
  static absl::StatusOr<std::unique_ptr<Board>> Open(const std::string& path);
  // A board that is in no directory. Its path() can be opened by other processes of this user on
  // this host while this Board lives; nothing is left whoever is killed.
  static absl::StatusOr<std::unique_ptr<Board>> CreateAnonymous(int ranks);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  int ranks() const;
  const std::string& path() const { return path_; }

  // --- by a rank, for itself
  void Enter(int rank);  // records the process, state kRunning
  void Beat(int rank);   // the heartbeat: one more
  void Wait(int rank);   // likewise, by whoever waits for a peer, again and again
  void SetAction(int rank,
                 absl::string_view action);  // cheap: called before every action; up to 64 bytes
  void SetState(int rank, State state);
  // Records why the rank failed, and kFailed as its state. The first failure of the job wins: true
  // for it alone. The default exit code is ExitCodeOf(cause).
  bool Fail(int rank, const absl::Status& cause, std::optional<int> exit_code = std::nullopt);
  // The same on behalf of a rank that was lost: `cause` in a few words, "its process is gone".
  bool DeclareLost(int rank, absl::string_view cause);
  void SetNote(Note note, absl::string_view text);
  // By who is about to print the report of the failure; true for the first one alone.
  bool ClaimReport();
  // By any process: finish the step, write a checkpoint, leave. Safe in a signal handler.
  void RequestStop();

  // --- by whoever brings what another host's board shows (BoardRelay)
  void ShowElsewhere(int rank, const Shown& shown);  // by one process and thread
  // The first failure there. Where this board has one already, that stays the first here.
  void AddFailure(const Failure& failure);

  // --- by anybody
  bool stop_requested() const;
  bool elsewhere(int rank) const;  // on another host: its process cannot be looked at from here
  int64_t pid(int rank) const;     // 0 before Enter
  ProcessId process(int rank) const;
  int64_t beats(int rank) const;
  int64_t actions(int rank) const;  // calls of SetAction
  int64_t waits(int rank) const;    // calls of Wait
  State state(int rank) const;
  std::string action(int rank) const;
  std::string note(Note note) const;
  std::optional<Failure> first_failure() const;

 private:
  struct Shared;
  struct Slot;
  Board() = default;
  static absl::StatusOr<std::unique_ptr<Board>> Make(int file, std::string path, int ranks);
  static absl::StatusOr<std::unique_ptr<Board>> Map(int file, std::string path, size_t bytes);
  Slot& slot(int rank) const;
  bool Publish(int slot, FailureKind kind, const Failure& failure);

  Shared* shared_ = nullptr;
  size_t bytes_ = 0;
  std::string path_;
  int file_ = -1;  // kept open by CreateAnonymous only
  std::atomic<int> declarer_{
      -1};  // whose slot holds what this process declares of others; -1: the parent's
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_BOARD_H_
