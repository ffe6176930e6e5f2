#include "launch/run/shared_board.h"

#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<std::unique_ptr<Board>> ShareBoard(MpiWorld& world) {
  absl::StatusOr<std::unique_ptr<Board>> board = std::unique_ptr<Board>();
  if (world.first_on_host()) board = Board::CreateAnonymous(world.size());
  const std::string mine = board.ok() && *board != nullptr ? (*board)->path() : "";
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> paths, world.AllGatherText(mine));
  if (!world.first_on_host()) {
    const std::vector<int>& hosts = world.host_of_rank();
    board = Board::Open(paths[absl::c_find(hosts, hosts[world.rank()]) - hosts.begin()]);
  }
  SIPHON_RETURN_IF_ERROR(world.AllGatherText("opened").status());
  return board;
}

absl::StatusOr<std::unique_ptr<BoardRelay>> JoinBoards(MpiWorld& world, Board& board) {
  BoardRelay::Options options{.host = world.host_of_rank()[world.rank()],
                              .host_of_rank = world.host_of_rank()};
  // Whom nothing is heard of is missed from the begin.
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> pids,
                          world.AllGatherText(absl::StrCat(getpid())));
  for (int rank = 0; rank < world.size() && world.first_on_host(); ++rank) {
    int64_t pid = 0;
    if (options.host_of_rank[rank] == options.host || !absl::SimpleAtoi(pids[rank], &pid)) continue;
    board.ShowElsewhere(rank, {.pid = pid, .state = Board::State::kRunning});
  }
  std::unique_ptr<BoardRelay> relay;
  std::string meeting;
  if (world.rank() == 0) {
    options.token = BoardRelay::NewToken();
    SIPHON_ASSIGN_OR_RETURN(relay, BoardRelay::Listen(&board, options));
    meeting = absl::StrCat(options.token, " ", relay->addresses());
  }
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> said, world.AllGatherText(meeting));
  if (!world.first_on_host() || relay != nullptr) return relay;
  const std::pair<std::string, std::string> found = absl::StrSplit(said[0], ' ');
  options.token = found.first;
  return BoardRelay::Connect(&board, options, found.second);
}

}  // namespace siphon
