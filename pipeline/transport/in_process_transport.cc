#include "pipeline/transport/in_process_transport.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "pipeline/transport/message_sizes.h"
#include "pipeline/transport/paced_check.h"

namespace siphon {
namespace {

// One started send or receive; guarded by the hub's mutex.
struct Transfer {
  WorkerId owner;
  WorkerId peer;
  std::vector<ConstPart> source;         // of a send
  std::vector<MutablePart> destination;  // of a receive
  bool done = false;
  absl::Status status;
};

struct Line {
  std::deque<Transfer*> sends;
  std::deque<Transfer*> receives;
  absl::Status broken;  // after a message of the wrong size nothing passes any more
};

// Where sends and receives of all workers meet. Whoever comes second copies, so that nobody has to
// be inside a call for the other's sake.
class Hub {
 public:
  explicit Hub(int workers) : workers_(workers), gone_(workers, false), changed_(workers) {}

  int workers() const { return workers_; }

  void Post(const Channel& channel, ChannelEnd end, Transfer* transfer) {
    const std::lock_guard lock(mutex_);
    if (gone_[transfer->peer.value])
      return Abandon(*transfer);  // never queued: nobody would take it out
    Line& line = lines_[channel];
    (end == ChannelEnd::kSender ? line.sends : line.receives).push_back(transfer);
    Match(channel, line);
  }

  // True when it is done; its status then.
  std::pair<bool, absl::Status> Look(const Transfer& transfer) {
    const std::lock_guard lock(mutex_);
    return {transfer.done, transfer.status};
  }

  // Returns when the transfer is done, or after kLivenessInterval.
  std::pair<bool, absl::Status> WaitShortly(const Transfer& transfer) {
    std::unique_lock lock(mutex_);
    if (!transfer.done) changed_[transfer.owner.value].wait_for(lock, kLivenessInterval);
    return {transfer.done, transfer.status};
  }

  // Takes back what `worker` has posted, so that nobody touches its memory any more; the others go
  // on waiting.
  void TakeBack(WorkerId worker) {
    const std::lock_guard lock(mutex_);
    for (auto& [channel, line] : lines_) {
      if (channel.from == worker) line.sends.clear();
      if (channel.to == worker) line.receives.clear();
    }
  }

  // Takes back what `worker` has posted and ends what others wait for from it.
  void Leave(WorkerId worker) {
    const std::lock_guard lock(mutex_);
    gone_[worker.value] = true;
    for (auto& [channel, line] : lines_) {
      if (channel.from != worker && channel.to != worker) continue;
      for (std::deque<Transfer*>* queue : {&line.sends, &line.receives}) {
        for (Transfer* transfer : *queue) {
          if (transfer->peer == worker) Abandon(*transfer);
        }
        queue->clear();
      }
    }
  }

 private:
  // All of these with the mutex held.
  void Finish(Transfer& transfer, absl::Status status) {
    transfer.done = true;
    transfer.status = std::move(status);
    changed_[transfer.owner.value].notify_all();
  }

  void Abandon(Transfer& transfer) {
    Finish(transfer,
           absl::UnavailableError(absl::StrCat("worker ", transfer.peer.value, " has gone away")));
  }

  void Match(const Channel& channel, Line& line) {
    while (!line.sends.empty() && !line.receives.empty()) {
      Transfer& send = *line.sends.front();
      Transfer& receive = *line.receives.front();
      line.sends.pop_front();
      line.receives.pop_front();
      const MessageSizes sent = SizesOf(send.source);
      const MessageSizes expected = SizesOf(receive.destination);
      if (line.broken.ok() && sent != expected) {
        line.broken = SizeMismatch(channel, sent, expected);
      }
      for (size_t part = 0; line.broken.ok() && part < send.source.size(); ++part) {
        if (send.source[part].empty()) continue;
        std::memcpy(receive.destination[part].data(), send.source[part].data(),
                    send.source[part].size());
      }
      Finish(send, line.broken);
      Finish(receive, line.broken);
    }
  }

  const int workers_;
  // The standard library's, since thread sanitizers see through it; guards everything below and all
  // transfers.
  std::mutex mutex_;
  std::map<Channel, Line> lines_;
  std::vector<bool> gone_;
  std::vector<std::condition_variable> changed_;  // of each worker
};

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(WorkerId me, std::shared_ptr<Hub> hub, LivenessCheck check)
      : me_(me), hub_(std::move(hub)), check_(std::move(check)) {}
  ~InProcessTransport() override { hub_->Leave(me_); }

  absl::StatusOr<TransferId> StartSend(const Channel& channel,
                                       std::vector<ConstPart> parts) override {
    Transfer transfer{.owner = me_, .peer = channel.to};
    transfer.source = std::move(parts);
    return Start(channel, ChannelEnd::kSender, std::move(transfer));
  }

  absl::StatusOr<TransferId> StartReceive(const Channel& channel,
                                          std::vector<MutablePart> parts) override {
    Transfer transfer{.owner = me_, .peer = channel.from};
    transfer.destination = std::move(parts);
    return Start(channel, ChannelEnd::kReceiver, std::move(transfer));
  }

  absl::StatusOr<bool> Test(TransferId id) override {
    const auto found = transfers_.find(id.value);
    if (found == transfers_.end()) return UnknownTransfer(id);
    const auto [done, status] = hub_->Look(*found->second);
    if (!done) return false;
    transfers_.erase(found);
    if (!status.ok()) return status;
    return true;
  }

  absl::Status Wait(TransferId id) override {
    const auto found = transfers_.find(id.value);
    if (found == transfers_.end()) return UnknownTransfer(id);
    while (true) {
      const auto [done, status] = hub_->WaitShortly(*found->second);
      if (done) {
        transfers_.erase(found);
        return status;
      }
      if (absl::Status alive = check_.CheckIfDue(); !alive.ok()) {
        hub_->TakeBack(me_);
        return alive;
      }
    }
  }

 private:
  absl::StatusOr<TransferId> Start(const Channel& channel, ChannelEnd end, Transfer transfer) {
    if (absl::Status valid = CheckChannel(channel, end, me_, hub_->workers()); !valid.ok()) {
      return valid;
    }
    const TransferId id{next_id_++};
    auto& slot = transfers_[id.value];
    slot = std::make_unique<Transfer>(std::move(transfer));
    hub_->Post(channel, end, slot.get());
    return id;
  }

  const WorkerId me_;
  const std::shared_ptr<Hub> hub_;  // lives until the last worker's transport has gone
  PacedCheck check_;
  int64_t next_id_ = 1;
  absl::flat_hash_map<int64_t, std::unique_ptr<Transfer>> transfers_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> MakeInProcessTransports(int workers, LivenessCheck check) {
  const auto hub = std::make_shared<Hub>(workers);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int worker = 0; worker < workers; ++worker) {
    transports.push_back(std::make_unique<InProcessTransport>(WorkerId(worker), hub, check));
  }
  return transports;
}

}  // namespace siphon
