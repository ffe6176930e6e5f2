#include "launch/process/board_relay.h"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launch/process/board_text.h"
#include "launch/process/line_socket.h"
#include "launch/process/stop_signal.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr Nanos kToConnect(3'000'000'000);  // to each address
constexpr Nanos kToSendLast(1'000'000'000);
constexpr int kUnknownHost = -1;
constexpr absl::string_view kGreeting = "siphon-board";

// "siphon-board TOKEN HOST".
std::string Greeting(const std::string& token, int host) {
  return absl::StrJoin({std::string(kGreeting), token, absl::StrCat(host)}, " ");
}

// kUnknownHost where it is none of ours.
int GreetedBy(const std::string& line, const std::string& token) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  int host = kUnknownHost;
  const bool ours = words.size() == 3 && words[0] == kGreeting && words[1] == token &&
                    absl::SimpleAtoi(words[2], &host);
  return ours ? host : kUnknownHost;
}

struct Peer {
  std::unique_ptr<LineSocket> socket;
  int host = kUnknownHost;  // until it has greeted
};

}  // namespace

struct BoardRelay::Impl {
  bool IsHub() const { return listener != nullptr; }

  // What this relay tells `peer`, which has its own host's ranks itself; and what it hears of it.
  RankFilter Told(int peer) const {
    if (!IsHub()) return [this](int rank) { return options.host_of_rank[rank] == options.host; };
    return [this, peer](int rank) { return options.host_of_rank[rank] != peer; };
  }
  RankFilter Heard(int peer) const {
    if (IsHub()) return [this, peer](int rank) { return options.host_of_rank[rank] == peer; };
    return [this](int rank) { return options.host_of_rank[rank] != options.host; };
  }

  void Tell(Peer& peer) const {
    if (peer.host == kUnknownHost || !peer.socket->Flush()) return;  // it has not taken the last
    peer.socket->Send(BoardText(*board, Told(peer.host)));
    peer.socket->Flush();
  }

  // False: it is to be dropped.
  bool Hear(Peer& peer) const {
    for (const std::string& line : peer.socket->Receive()) {
      if (peer.host != kUnknownHost) {
        if (!ShowBoardText(line, Heard(peer.host), *board).ok()) return false;
        continue;
      }
      peer.host = GreetedBy(line, options.token);
      const auto& hosts = options.host_of_rank;
      if (std::find(hosts.begin(), hosts.end(), peer.host) == hosts.end()) return false;
      peer.socket->Send(Greeting(options.token, options.host));
    }
    return !peer.socket->ended();
  }

  // What went with it is for others to see, by its silence, if it was not the first rank.
  void Lose(const Peer& peer) const {
    if (peer.host == kUnknownHost) return;
    const auto& hosts = options.host_of_rank;
    const auto first =
        static_cast<int>(std::find(hosts.begin(), hosts.end(), peer.host) - hosts.begin());
    if (board->state(first) != Board::State::kRunning) return;
    board->DeclareLost(first, "its connection to the other hosts has ended");
  }

  void Pass() {
    if (IsHub()) {
      while (auto socket = listener->Accept()) peers.push_back({std::move(socket)});
    }
    for (Peer& peer : peers) {
      if (!Hear(peer)) {
        Lose(peer);
        peer.socket = nullptr;
      }
    }
    std::erase_if(peers, [](const Peer& peer) { return peer.socket == nullptr; });
    for (Peer& peer : peers) Tell(peer);
  }

  void Run() {
    do {
      Pass();
    } while (!stop.StoppedWithin(options.period));
    // Nobody waits for strangers.
    std::erase_if(peers, [](const Peer& peer) { return peer.host == kUnknownHost; });
    for (Peer& peer : peers) {
      peer.socket->Flush(kToSendLast);
      Tell(peer);
      peer.socket->Flush(kToSendLast);
      peer.socket->EndSending();
    }
    for (Peer& peer : peers) peer.socket->AwaitEnd(kToSendLast);
  }

  Board* board = nullptr;
  Options options;
  std::unique_ptr<LineListener> listener;  // null: host 0 is elsewhere
  std::vector<Peer> peers;                 // the thread's own, once it runs

  StopSignal stop;
  std::thread thread;
};

BoardRelay::BoardRelay(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->Run(); });
}

BoardRelay::~BoardRelay() {
  impl_->stop.Stop();
  impl_->thread.join();
}

absl::StatusOr<std::unique_ptr<BoardRelay>> BoardRelay::Listen(Board* board, Options options) {
  auto impl = std::make_unique<Impl>();
  impl->board = board;
  impl->options = std::move(options);
  SIPHON_ASSIGN_OR_RETURN(impl->listener, LineListener::Open());
  return std::unique_ptr<BoardRelay>(new BoardRelay(std::move(impl)));
}

std::string BoardRelay::addresses() const {
  return impl_->IsHub() ? absl::StrJoin(impl_->listener->Addresses(), ",") : "";
}

absl::StatusOr<std::unique_ptr<BoardRelay>> BoardRelay::Connect(Board* board, Options options,
                                                                const std::string& addresses) {
  auto impl = std::make_unique<Impl>();
  impl->board = board;
  impl->options = std::move(options);
  std::vector<std::string> failures;
  for (const absl::string_view part : absl::StrSplit(addresses, ',')) {
    const std::string address(part);
    auto socket = LineSocket::Connect(address, kToConnect);
    if (!socket.ok()) {
      failures.emplace_back(socket.status().message());
      continue;
    }
    (*socket)->Send(Greeting(impl->options.token, impl->options.host));
    (*socket)->Flush(kToConnect);
    // Another program may listen there, on this machine.
    const std::vector<std::string> answer = (*socket)->Receive(kToConnect);
    if (answer.empty() || GreetedBy(answer.front(), impl->options.token) != 0) {
      failures.push_back(absl::StrCat(address, ": this job does not answer there"));
      continue;
    }
    impl->peers.push_back({*std::move(socket), 0});
    return std::unique_ptr<BoardRelay>(new BoardRelay(std::move(impl)));
  }
  return absl::UnavailableError(
      absl::StrCat("worker 0's host cannot be reached over TCP, by which hosts watch each other; "
                   "is there a firewall between them? Tried:\n    ",
                   absl::StrJoin(failures, "\n    ")));
}

std::string BoardRelay::NewToken() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8),
                      absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

}  // namespace siphon
