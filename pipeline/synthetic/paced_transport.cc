#include "pipeline/synthetic/paced_transport.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/numeric/int128.h"
#include "pipeline/transport/message_sizes.h"
#include "planner/status.h"

namespace siphon {
namespace {

// When messages under way were started by their senders, channel by channel.
class PostBoard {
 public:
  void Post(const Channel& channel, Nanos now) {
    const std::lock_guard lock(mutex_);
    posts_[channel].push_back(now);
  }
  void TakeBack(const Channel& channel) {
    const std::lock_guard lock(mutex_);
    posts_[channel].pop_back();
  }
  // Of the oldest message that was not taken.
  Nanos Take(const Channel& channel) {
    const std::lock_guard lock(mutex_);
    std::deque<Nanos>& posts = posts_[channel];
    SIPHON_CHECK(!posts.empty(), "what has arrived was sent");
    const Nanos post = posts.front();
    posts.pop_front();
    return post;
  }

 private:
  std::mutex mutex_;
  std::map<Channel, std::deque<Nanos>> posts_ ABSL_GUARDED_BY(mutex_);
};

Nanos TimeOf(int64_t bytes, const CopyLinkRate& link) {
  if (link.rate.value == 0) return link.latency;
  const absl::int128 nanos = absl::int128(bytes) * 1'000'000'000 / link.rate.value;
  return link.latency + Nanos(static_cast<int64_t>(nanos));
}

class PacedTransport final : public Transport {
 public:
  PacedTransport(std::unique_ptr<Transport> inner, std::shared_ptr<PostBoard> board,
                 MessageRateOf rate_of, WorkClock clock)
      : inner_(std::move(inner)),
        board_(std::move(board)),
        rate_of_(std::move(rate_of)),
        clock_(std::move(clock)) {}

  absl::StatusOr<TransferId> StartSend(const Channel& channel,
                                       std::vector<ConstPart> parts) override {
    // Before the receiver can see the message.
    if (IsPaced(channel)) board_->Post(channel, clock_.now());
    absl::StatusOr<TransferId> started = inner_->StartSend(channel, std::move(parts));
    if (!started.ok() && IsPaced(channel)) board_->TakeBack(channel);
    return started;
  }

  absl::StatusOr<TransferId> StartReceive(const Channel& channel,
                                          std::vector<MutablePart> parts) override {
    const Nanos time =
        IsPaced(channel) ? TimeOf(TotalBytes(SizesOf(parts)), rate_of_(channel)) : Nanos(0);
    SIPHON_ASSIGN_OR_RETURN(const TransferId id, inner_->StartReceive(channel, std::move(parts)));
    if (!IsPaced(channel)) return id;
    receives_[id.value] = {.channel = channel, .posted = clock_.now(), .time = time};
    lines_[channel].waiting.push_back(id.value);
    return id;
  }

  absl::StatusOr<bool> Test(TransferId id) override {
    const auto found = receives_.find(id.value);
    if (found == receives_.end()) return inner_->Test(id);
    std::deque<int64_t>& waiting = lines_[found->second.channel].waiting;
    while (!found->second.arrival.has_value()) {
      const int64_t first = waiting.front();
      SIPHON_ASSIGN_OR_RETURN(const bool done, inner_->Test({first}));
      if (!done) return false;
      SetArrival(first);
    }
    if (clock_.now() < *found->second.arrival) return false;
    receives_.erase(found);
    return true;
  }

  absl::Status Wait(TransferId id) override {
    const auto found = receives_.find(id.value);
    if (found == receives_.end()) return inner_->Wait(id);
    std::deque<int64_t>& waiting = lines_[found->second.channel].waiting;
    while (!found->second.arrival.has_value()) {
      const int64_t first = waiting.front();
      SIPHON_RETURN_IF_ERROR(inner_->Wait({first}));
      SetArrival(first);
    }
    clock_.sleep_until(*found->second.arrival);
    receives_.erase(found);
    return absl::OkStatus();
  }

 private:
  struct PacedReceive {
    Channel channel;
    Nanos posted;
    Nanos time;
    std::optional<Nanos> arrival;  // once the message itself is here
  };
  struct PacedLine {
    std::deque<int64_t> waiting;  // receives without an arrival, in order
    Nanos free;                   // when the message before was there
  };

  static bool IsPaced(const Channel& channel) { return channel.lane != Lane::kControl; }

  // Of the first receive of its channel's line, whose message is here.
  void SetArrival(int64_t id) {
    PacedReceive& receive = receives_.at(id);
    PacedLine& line = lines_[receive.channel];
    const Nanos begin = std::max({receive.posted, board_->Take(receive.channel), line.free});
    receive.arrival = line.free = begin + receive.time;
    line.waiting.pop_front();
  }

  const std::unique_ptr<Transport> inner_;
  const std::shared_ptr<PostBoard> board_;
  const MessageRateOf rate_of_;
  const WorkClock clock_;
  std::map<int64_t, PacedReceive> receives_;  // of paced channels, not yet reported done
  std::map<Channel, PacedLine> lines_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> PaceTransports(
    std::vector<std::unique_ptr<Transport>> transports, MessageRateOf rate_of, WorkClock clock) {
  const auto board = std::make_shared<PostBoard>();
  for (std::unique_ptr<Transport>& transport : transports) {
    transport = std::make_unique<PacedTransport>(std::move(transport), board, rate_of, clock);
  }
  return transports;
}

}  // namespace siphon
