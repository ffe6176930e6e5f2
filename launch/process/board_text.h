#ifndef SIPHON_LAUNCH_PROCESS_BOARD_TEXT_H_
#define SIPHON_LAUNCH_PROCESS_BOARD_TEXT_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "launch/process/board.h"

namespace siphon {

// What a board shows, as a line for the board of another host (JSON, without a newline).

using RankFilter = std::function<bool(int rank)>;

// What the board shows of those ranks that have entered it, whether it asks for a stop, and its
// first failure. Notes are not told: each host's first rank writes them.
std::string BoardText(const Board& board, const RankFilter& whose);

// Shows it on `board`, ranks as ranks elsewhere. Errors: InvalidArgument
// where it is no such line, or tells of ranks not among `whose`; then nothing of it is shown.
absl::Status ShowBoardText(absl::string_view line, const RankFilter& whose, Board& board);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_BOARD_TEXT_H_
