#include "launch/process/board_relay.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/process/line_socket.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr Nanos kPeriod(1'000'000);
constexpr Nanos kLong(10'000'000'000);

// Whether it comes true before long; a relay needs a few periods.
bool Becomes(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kLong.value);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// A job on hosts in this process, each with a board and a relay.
struct Hosts {
  explicit Hosts(std::vector<int> host_of_rank) : host_of(std::move(host_of_rank)) {
    const int hosts = host_of.back() + 1;
    for (int host = 0; host < hosts; ++host) {
      boards.push_back(*Board::CreateAnonymous(static_cast<int>(host_of.size())));
    }
    relays.push_back(*BoardRelay::Listen(boards[0].get(), OptionsOf(0)));
    for (int host = 1; host < hosts; ++host) {
      auto relay = BoardRelay::Connect(boards[host].get(), OptionsOf(host), relays[0]->addresses());
      EXPECT_TRUE(relay.ok()) << relay.status();
      relays.push_back(*std::move(relay));
    }
    for (size_t rank = 0; rank < host_of.size(); ++rank)
      OwnBoard(rank).Enter(static_cast<int>(rank));
  }
  BoardRelay::Options OptionsOf(int host) const {
    return {.host = host, .host_of_rank = host_of, .token = "secret", .period = kPeriod};
  }
  Board& OwnBoard(size_t rank) { return *boards[host_of[rank]]; }

  std::vector<int> host_of;
  std::vector<std::unique_ptr<Board>> boards;
  std::vector<std::unique_ptr<BoardRelay>> relays;
};

TEST(BoardRelay, ShowsEachRankOnAllBoards) {
  Hosts hosts({0, 0, 1, 2});
  for (size_t rank = 0; rank < 4; ++rank) {
    hosts.OwnBoard(rank).SetAction(static_cast<int>(rank), absl::StrCat(rank, "F0"));
  }
  for (size_t board = 0; board < 3; ++board) {
    for (int rank = 0; rank < 4; ++rank) {
      const Board& shown = *hosts.boards[board];
      EXPECT_TRUE(Becomes([&] { return shown.action(rank) == absl::StrCat(rank, "F0"); }));
      EXPECT_EQ(shown.elsewhere(rank), hosts.host_of[rank] != static_cast<int>(board));
    }
  }
}

TEST(BoardRelay, BringsAFailureToAllBoards) {
  Hosts hosts({0, 1, 2});
  hosts.boards[1]->Fail(1, absl::InternalError("broken"));
  for (const auto& board : hosts.boards) {
    EXPECT_TRUE(Becomes([&] { return board->first_failure().has_value(); }));
    EXPECT_EQ(board->first_failure()->message, "broken");
    EXPECT_TRUE(Becomes([&] { return board->state(1) == Board::State::kFailed; }));
  }
}

TEST(BoardRelay, BringsARequestToStopToAllBoards) {
  Hosts hosts({0, 1, 2});
  hosts.boards[2]->RequestStop();
  for (const auto& board : hosts.boards) {
    EXPECT_TRUE(Becomes([&] { return board->stop_requested(); }));
  }
}

// By which others see that it lives (LossWatch).
TEST(BoardRelay, BringsEachBeatOnce) {
  Hosts hosts({0, 1, 2});
  for (int beats = 1; beats <= 20; ++beats) {
    hosts.boards[2]->Beat(2);
    for (const auto& board : hosts.boards) {
      EXPECT_TRUE(Becomes([&] { return board->beats(2) == beats; }));
      EXPECT_EQ(board->beats(1), 0);
    }
  }
}

TEST(BoardRelay, DeclaresTheFirstRankOfAHostLostWhoseConnectionEnds) {
  Hosts hosts({0, 0, 1, 1, 2});
  EXPECT_TRUE(Becomes([&] { return hosts.boards[0]->pid(2) != 0; }));
  hosts.relays[1].reset();  // as when its process is killed
  for (const int host : {0, 2}) {
    const Board& board = *hosts.boards[host];
    EXPECT_TRUE(Becomes([&] { return board.first_failure().has_value(); }));
    EXPECT_EQ(board.first_failure()->rank, 2);
    EXPECT_EQ(board.first_failure()->kind, Board::FailureKind::kLost);
    EXPECT_EQ(board.first_failure()->message, "its connection to the other hosts has ended");
  }
}

TEST(BoardRelay, TellsAllOthersWhereTheFirstHostIsLost) {
  Hosts hosts({0, 0, 1, 2});
  for (const int host : {1, 2}) {
    EXPECT_TRUE(Becomes([&] { return hosts.boards[host]->pid(0) != 0; }));
  }
  hosts.relays[0].reset();
  for (const int host : {1, 2}) {
    EXPECT_TRUE(Becomes([&] { return hosts.boards[host]->first_failure().has_value(); }));
    EXPECT_EQ(hosts.boards[host]->first_failure()->rank, 0);
  }
}

TEST(BoardRelay, EndsInPeaceWithRanksThatHaveFinished) {
  for (const int first : {0, 1}) {
    Hosts hosts({0, 1});
    for (const int rank : {0, 1}) hosts.OwnBoard(rank).SetState(rank, Board::State::kFinished);
    const Board& other = *hosts.boards[1 - first];
    hosts.relays[first].reset();
    EXPECT_TRUE(Becomes([&] { return other.state(first) == Board::State::kFinished; }));
    hosts.relays[1 - first].reset();
    EXPECT_FALSE(other.first_failure().has_value());
  }
}

TEST(BoardRelay, TalksToNobodyWithoutTheToken) {
  Hosts hosts({0, 1, 2});
  auto options = hosts.OptionsOf(1);
  options.token = "guessed";
  const auto board = Board::CreateAnonymous(3);
  const auto refused = BoardRelay::Connect(board->get(), options, hosts.relays[0]->addresses());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("worker 0's host cannot be reached over TCP"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("this job does not answer there"));

  const std::vector<std::string> addresses = absl::StrSplit(hosts.relays[0]->addresses(), ',');
  const auto stranger = *LineSocket::Connect(addresses.back(), kLong);
  stranger->Send("GET / HTTP/1.1");
  stranger->Flush();
  EXPECT_TRUE(Becomes([&] {
    EXPECT_TRUE(stranger->Receive(kPeriod).empty());
    return stranger->ended();
  }));
  EXPECT_FALSE(hosts.boards[0]->first_failure().has_value());
}

TEST(BoardRelay, MakesTokensThatDiffer) {
  EXPECT_EQ(BoardRelay::NewToken().size(), 32u);
  EXPECT_NE(BoardRelay::NewToken(), BoardRelay::NewToken());
}

}  // namespace
}  // namespace siphon
