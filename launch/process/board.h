#ifndef SIPHON_LAUNCH_PROCESS_BOARD_H_
#define SIPHON_LAUNCH_PROCESS_BOARD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siphon {

// Where every process of a job shows how it is: one page of shared memory a rank, in a file that all of them (the parent of
// `siphon train` among them) have mapped. Read without locks.
//
// Thread-safety: all methods, from any thread and process; a rank writes its own slot only.
class Board {
 public:
  enum class State : int32_t { kStarting, kRunning, kFinished, kStopped, kFailed };

  struct Failure {
    int rank = 0;
    absl::StatusCode code = absl::StatusCode::kUnknown;
    std::string action;   // what the rank was doing
    std::string message;  // the cause
  };

  // Makes the file (replacing nothing: AlreadyExists) for `ranks` ranks, or maps an existing one.
  static absl::StatusOr<std::unique_ptr<Board>> Create(const std::string& path, int ranks);
  static absl::StatusOr<std::unique_ptr<Board>> Open(const std::string& path);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  int ranks() const;

  // --- by a rank, for itself
  void Enter(int rank);                                  // records the pid, state kRunning
  void Beat(int rank);                                   // the heartbeat: one more
  void SetAction(int rank, absl::string_view action);    // cheap: called before every action
  void SetState(int rank, State state);
  // Records why the rank failed. The first failure of the job wins: true for it alone.
  bool Fail(int rank, const absl::Status& cause);
  // The same on behalf of a rank that was lost.
  bool DeclareLost(int rank, absl::string_view cause);
  void RequestStop();          // by any process: finish the step, write a checkpoint, leave

  // --- by anybody
  bool stop_requested() const;
  int64_t pid(int rank) const;  // 0 before Enter
  int64_t beats(int rank) const;
  State state(int rank) const;
  std::string action(int rank) const;
  std::optional<Failure> first_failure() const;

 private:
  struct Shared;
  Board() = default;
  Shared* shared_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_BOARD_H_
