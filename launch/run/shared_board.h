#ifndef SIPHON_LAUNCH_RUN_SHARED_BOARD_H_
#define SIPHON_LAUNCH_RUN_SHARED_BOARD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "launch/mpi_world.h"
#include "launch/process/board.h"
#include "launch/process/board_relay.h"

namespace siphon {

// The boards of ranks that no parent watches. Both are collective.

// One on each host, made by its first rank and opened by all others there before it may close it.
absl::StatusOr<std::unique_ptr<Board>> ShareBoard(MpiWorld& world);

// By which the boards of several hosts show the same; null where another rank has this host's.
// Call when this rank has entered `board`, which outlives it. Errors: as BoardRelay::Listen and
// Connect.
absl::StatusOr<std::unique_ptr<BoardRelay>> JoinBoards(MpiWorld& world, Board& board);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SHARED_BOARD_H_
