#include "pipeline/transport/paced_transport.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "pipeline/transport/message_sizes.h"
#include "planner/status.h"

namespace siphon {
namespace {

class PacedTransport final : public Transport {
 public:
  PacedTransport(std::unique_ptr<Transport> inner, MessagePosts posts, MessageArrival arrival,
                 PaceClock clock)
      : inner_(std::move(inner)),
        posts_(posts),
        arrival_(std::move(arrival)),
        clock_(std::move(clock)) {}

  absl::StatusOr<TransferId> StartSend(const Channel& channel,
                                       std::vector<ConstPart> parts) override {
    // Before the receiver can see the message; one that cannot be started is overwritten.
    if (IsPaced(channel)) posts_.Post(channel, sent_[channel], clock_.now());
    absl::StatusOr<TransferId> started = inner_->StartSend(channel, std::move(parts));
    if (started.ok() && IsPaced(channel)) ++sent_[channel];
    return started;
  }

  absl::StatusOr<TransferId> StartReceive(const Channel& channel,
                                          std::vector<MutablePart> parts) override {
    const Bytes bytes(TotalBytes(SizesOf(parts)));
    SIPHON_ASSIGN_OR_RETURN(const TransferId id, inner_->StartReceive(channel, std::move(parts)));
    if (!IsPaced(channel)) return id;
    receives_[id.value] = {.channel = channel, .posted = clock_.now(), .bytes = bytes};
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
    Bytes bytes;
    std::optional<Nanos> arrival;  // once the message itself is here
  };
  struct PacedLine {
    std::deque<int64_t> waiting;  // receives without an arrival, in order
    int64_t arrived = 0;          // messages with an arrival
    Nanos free;                   // when the message before was there
  };

  static bool IsPaced(const Channel& channel) { return channel.lane != Lane::kControl; }

  // Of the first receive of its channel's line, whose message is here.
  void SetArrival(int64_t id) {
    PacedReceive& receive = receives_.at(id);
    PacedLine& line = lines_[receive.channel];
    const Nanos sent = posts_.PostOf(receive.channel, line.arrived++);
    const Nanos begin = std::max({receive.posted, sent, line.free});
    receive.arrival = line.free = arrival_(receive.channel, receive.bytes, begin);
    line.waiting.pop_front();
  }

  const std::unique_ptr<Transport> inner_;
  const MessagePosts posts_;
  const MessageArrival arrival_;
  const PaceClock clock_;
  std::map<Channel, int64_t> sent_;           // messages started
  std::map<int64_t, PacedReceive> receives_;  // of paced channels, not yet reported done
  std::map<Channel, PacedLine> lines_;
};

constexpr int64_t kPacedLanes = 2;    // forward and backward
constexpr int64_t kWordsOfAPost = 2;  // the message's number from 1, and its time

std::atomic_ref<int64_t> WordAt(int64_t* word) {
  static_assert(std::atomic_ref<int64_t>::is_always_lock_free, "between processes");
  return std::atomic_ref<int64_t>(*word);
}

}  // namespace

Bytes MessagePosts::BytesFor(int workers) {
  const int64_t channels = int64_t{workers} * workers * kPacedLanes;
  return Bytes(channels * kRemembered * kWordsOfAPost * static_cast<int64_t>(sizeof(int64_t)));
}

MessagePosts::MessagePosts(int workers, absl::Span<std::byte> memory)
    : workers_(workers), memory_(memory) {
  SIPHON_CHECK(static_cast<int64_t>(memory_.size()) >= BytesFor(workers).value,
               "every channel has its place");
}

int64_t* MessagePosts::SlotOf(const Channel& channel, int64_t number) const {
  const int64_t lane = channel.lane == Lane::kForward ? 0 : 1;
  const int64_t line =
      (int64_t{channel.from.value} * workers_ + channel.to.value) * kPacedLanes + lane;
  return reinterpret_cast<int64_t*>(memory_.data()) +
         (line * kRemembered + number % kRemembered) * kWordsOfAPost;
}

// A slot that is written again has no number meanwhile.
void MessagePosts::Post(const Channel& channel, int64_t number, Nanos now) const {
  const auto exists = [this](WorkerId worker) {
    return 0 <= worker.value && worker.value < workers_;
  };
  if (!exists(channel.from) || !exists(channel.to)) return;
  int64_t* const slot = SlotOf(channel, number);
  WordAt(slot).store(0);
  WordAt(slot + 1).store(now.value);
  WordAt(slot).store(number + 1);
}

Nanos MessagePosts::PostOf(const Channel& channel, int64_t number) const {
  int64_t* const slot = SlotOf(channel, number);
  if (WordAt(slot).load() != number + 1) return Nanos(0);
  const Nanos time(WordAt(slot + 1).load());
  return WordAt(slot).load() == number + 1 ? time : Nanos(0);
}

std::unique_ptr<Transport> PaceTransport(std::unique_ptr<Transport> inner, MessagePosts posts,
                                         MessageArrival arrival, PaceClock clock) {
  return std::make_unique<PacedTransport>(std::move(inner), posts, std::move(arrival),
                                          std::move(clock));
}

}  // namespace siphon
