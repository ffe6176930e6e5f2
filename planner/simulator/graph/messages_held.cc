#include "planner/simulator/graph/messages_held.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace siphon {
namespace {

constexpr int kNone = -1;

bool IsLoweredSchedule(const Schedule& schedule) {
  for (const auto& program : schedule.programs) {
    for (const Action& action : program) {
      if (IsCommunication(action.kind)) return true;
    }
  }
  return false;
}

// A message and whom it concerns.
struct Sent {
  int from = 0;
  int place = 0;  // in the sender's program
  int to = 0;
  int taken = kNone;  // place in the receiver's program of what takes it; kNone: nothing does
  bool forward = true;
};

// Runs the programs by what their actions wait for, without time, and keeps for each worker how far
// it knows the others to be.
class Receipts {
 public:
  Receipts(const Schedule& schedule, const ScheduleIndex& index)
      : schedule_(schedule),
        index_(index),
        lowered_(IsLoweredSchedule(schedule)),
        workers_(static_cast<int>(schedule.programs.size())),
        known_(workers_, std::vector<int>(workers_, 0)),
        open_(workers_) {
    for (const auto& program : schedule.programs) {
      messages_.emplace_back(program.size(), kNone);
      freed_.emplace_back(program.size());
      for (size_t place = 0; place < program.size(); ++place) {
        freed_.back()[place] = static_cast<int>(place);
      }
    }
    for (int worker = 0; worker < workers_; ++worker) FindMessages(worker);
  }

  std::vector<std::vector<int>> Run(int room) && {
    std::vector<int> next(workers_, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int worker = 0; worker < workers_; ++worker) {
        const auto end = static_cast<int>(schedule_.programs[worker].size());
        while (next[worker] < end && Take(worker, next[worker], next)) {
          Finish(worker, next[worker]++);
          moved = true;
        }
      }
    }
    for (int worker = 0; worker < workers_; ++worker) {
      const auto end = static_cast<int>(schedule_.programs[worker].size());
      for (const int message : open_[worker]) taken_by_[message] = end;
    }
    FreeInOrder(room);
    return std::move(freed_);
  }

 private:
  const Action& At(int worker, int place) const { return schedule_.programs[worker][place]; }
  int WorkerOf(StageId stage) const { return schedule_.worker_of_stage[stage.value].value; }

  // Whether the action sends what goes forward, or backward; none for one that sends nothing.
  std::optional<bool> Sends(ActionKind kind) const {
    if (kind == ActionKind::kSendForward) return true;
    if (kind == ActionKind::kSendBackward) return false;
    if (lowered_) return std::nullopt;
    if (kind == ActionKind::kForward) return true;
    const bool makes_gradient = kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
    return makes_gradient ? std::optional<bool>(false) : std::nullopt;
  }

  int PlaceOfUser(StageId stage, MicrobatchId microbatch, bool forward) const {
    if (forward) return index_.Find({stage, ActionKind::kForward, microbatch});
    const int whole = index_.Find({stage, ActionKind::kBackward, microbatch});
    if (whole != kNone) return whole;
    return index_.Find({stage, ActionKind::kBackwardInput, microbatch});
  }

  void FindMessages(int worker) {
    const auto end = static_cast<int>(schedule_.programs[worker].size());
    for (int place = 0; place < end; ++place) {
      const Action& action = At(worker, place);
      const std::optional<bool> forward = Sends(action.kind);
      if (!forward.has_value()) continue;
      const StageId target(action.stage.value + (*forward ? 1 : -1));
      if (target.value < 0 || target.value >= StageCount(schedule_)) continue;
      if (WorkerOf(target) == worker) continue;
      messages_[worker][place] = static_cast<int>(sent_.size());
      const int user = PlaceOfUser(target, action.microbatch, *forward);
      sent_.push_back({worker, place, WorkerOf(target), user, *forward});
      if (user != kNone) brings_[{WorkerOf(target), user}] = messages_[worker][place];
    }
    taken_by_.assign(sent_.size(), kNone);
    knowledge_.resize(sent_.size());
  }

  // Waits for the message that the action takes, and learns what its sender knew. False while it
  // was not sent.
  bool Take(int worker, int place, const std::vector<int>& next) {
    const auto brought = brings_.find({worker, place});
    if (brought == brings_.end()) return true;
    const Sent& message = sent_[brought->second];
    if (next[message.from] <= message.place) return false;
    std::vector<int>& known = known_[worker];
    const std::vector<int>& theirs = knowledge_[brought->second];
    for (int other = 0; other < workers_; ++other) {
      known[other] = std::max(known[other], theirs[other]);
    }
    std::erase_if(open_[worker], [&](int sent) {
      const bool taken = sent_[sent].taken != kNone && sent_[sent].taken < known[sent_[sent].to];
      if (taken) taken_by_[sent] = place;
      return taken;
    });
    return true;
  }

  void Finish(int worker, int place) {
    known_[worker][worker] = place + 1;
    const int message = messages_[worker][place];
    if (message == kNone) return;
    knowledge_[message] = known_[worker];
    open_[worker].push_back(message);
  }

  void FreeInOrder(int room) {
    std::map<std::tuple<int, int, bool>, std::vector<int>> channels;
    for (size_t message = 0; message < sent_.size(); ++message) {
      const Sent& sent = sent_[message];
      channels[{sent.from, sent.to, sent.forward}].push_back(static_cast<int>(message));
    }
    for (const auto& [channel, messages] : channels) {
      for (size_t index = 0; index < messages.size(); ++index) {
        const Sent& sent = sent_[messages[index]];
        int& freed = freed_[sent.from][sent.place];
        if (index < static_cast<size_t>(room)) continue;
        freed = std::max(freed, taken_by_[messages[index - static_cast<size_t>(room)]]);
      }
    }
  }

  const Schedule& schedule_;
  const ScheduleIndex& index_;
  const bool lowered_;
  const int workers_;
  std::vector<Sent> sent_;                     // ascending places of each sender
  std::vector<std::vector<int>> messages_;     // [worker][place], in sent_; kNone
  std::map<std::pair<int, int>, int> brings_;  // (worker, place) -> the message that it takes
  std::vector<std::vector<int>> known_;        // [worker][other]: actions known to be done
  std::vector<std::vector<int>> knowledge_;    // [message]: known_ of its sender behind it
  std::vector<std::vector<int>> open_;         // [worker]: messages not known to be taken
  std::vector<int> taken_by_;                  // [message]: place of the sender that knows
  std::vector<std::vector<int>> freed_;        // [worker][place]
};

}  // namespace

std::vector<std::vector<int>> MessagesHeld(const Schedule& schedule, const ScheduleIndex& index,
                                           int room) {
  return Receipts(schedule, index).Run(room);
}

}  // namespace siphon
