#ifndef SIPHON_LAUNCH_PROCESS_BOARD_RELAY_H_
#define SIPHON_LAUNCH_PROCESS_BOARD_RELAY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/process/board.h"
#include "planner/units.h"

namespace siphon {

// Joins the boards of a job's hosts. A thread shows on this host's board what ranks elsewhere show
// on theirs, every `period`, so that heartbeats, failures and requests to stop reach all ranks. The
// first rank of each host has one. That of host 0 takes connections (TCP) and passes on what each
// host tells to all others. A host whose connection ends while its first rank runs is lost: that
// rank is declared lost.
//
// Whoever connects has to know the job's token.
class BoardRelay {
 public:
  struct Options {
    int host = 0;                   // this one
    std::vector<int> host_of_rank;  // hosts in the order of their first ranks
    std::string token;              // known to all relays of the job and to nobody else; no spaces
    Nanos period = Nanos(100'000'000);
  };
  // On host 0; the thread runs from now on. `board` outlives it. Errors: Unavailable.
  static absl::StatusOr<std::unique_ptr<BoardRelay>> Listen(Board* board, Options options);
  // What the others connect to, and how: host 0's addresses, with commas between.
  std::string addresses() const;
  // On any other host. Errors: Unavailable with each address and why it does not work.
  static absl::StatusOr<std::unique_ptr<BoardRelay>> Connect(Board* board, Options options,
                                                             const std::string& addresses);
  // Tells once more what the board shows, then ends. No rank is to be declared lost for it: after
  // SetState(kFinished or kStopped).
  ~BoardRelay();
  BoardRelay(const BoardRelay&) = delete;
  BoardRelay& operator=(const BoardRelay&) = delete;

  // A random token.
  static std::string NewToken();

 private:
  struct Impl;
  explicit BoardRelay(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_BOARD_RELAY_H_
