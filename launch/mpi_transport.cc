#include <mpi.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "launch/mpi_world.h"
#include "launch/mpi_world_impl.h"
#include "pipeline/transport/message_sizes.h"
#include "pipeline/transport/paced_check.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kTag = 0;  // the lane has its own communicator, the peer is the rank
// A message is a head of fixed size (total bytes, number of parts, bytes of each part as far as
// they fit), a second head with the sizes that did not, and then each part, cut into pieces.
constexpr size_t kHeadWords = 32;
constexpr size_t kSizesInHead = kHeadWords - 2;
// MPI gives no way to sleep until something comes. A wait looks a few times with a yield in
// between, and then naps.
constexpr int kYieldsBeforeNap = 50;
constexpr long kNapNanoseconds = 50'000;

using Words = std::vector<uint64_t>;

struct Transfer {
  enum class Phase { kQueued, kHead, kRest, kParts };  // a send starts in kParts
  Channel channel;
  MessageSizes sizes;
  std::vector<MutablePart> destination;  // of a receive
  Words head, rest;
  Phase phase = Phase::kQueued;
  std::vector<MPI_Request> requests;
  bool done = false;
  absl::Status status;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(WorkerId me, int workers, const LaneComms& comms, LivenessCheck check, Bytes piece)
      : me_(me), workers_(workers), comms_(comms), check_(std::move(check)), piece_(piece) {}

  ~MpiTransport() override {
    for (auto& [id, transfer] : transfers_) {
      if (!Withdraw(*transfer)) {
        // MPI still holds pointers into it, and the job is ending in an error: better a leak than a
        // write into freed memory.
        static_cast<void>(transfer.release());
      }
    }
  }

  absl::StatusOr<TransferId> StartSend(const Channel& channel,
                                       std::vector<ConstPart> parts) override {
    SIPHON_RETURN_IF_ERROR(CheckChannel(channel, ChannelEnd::kSender, me_, workers_));
    auto transfer =
        std::make_unique<Transfer>(Transfer{.channel = channel, .sizes = SizesOf(parts)});
    const std::vector<int64_t>& sizes = transfer->sizes.parts;
    transfer->head.assign(kHeadWords, 0);
    transfer->head[0] = static_cast<uint64_t>(TotalBytes(transfer->sizes));
    transfer->head[1] = sizes.size();
    const size_t in_head = std::min(sizes.size(), kSizesInHead);
    std::copy_n(sizes.begin(), in_head, transfer->head.begin() + 2);
    transfer->rest.assign(sizes.begin() + static_cast<std::ptrdiff_t>(in_head), sizes.end());
    transfer->phase = Transfer::Phase::kParts;
    absl::Status sent = Post(*transfer, BytesOf(transfer->head));
    if (sent.ok()) sent = Post(*transfer, BytesOf(transfer->rest));
    for (size_t part = 0; sent.ok() && part < parts.size(); ++part) {
      sent = Post(*transfer,
                  MutablePart(const_cast<std::byte*>(parts[part].data()), parts[part].size()));
    }
    const TransferId id = Keep(std::move(transfer));
    SIPHON_RETURN_IF_ERROR(sent);
    return id;
  }

  absl::StatusOr<TransferId> StartReceive(const Channel& channel,
                                          std::vector<MutablePart> parts) override {
    SIPHON_RETURN_IF_ERROR(CheckChannel(channel, ChannelEnd::kReceiver, me_, workers_));
    auto transfer =
        std::make_unique<Transfer>(Transfer{.channel = channel, .sizes = SizesOf(parts)});
    transfer->destination = std::move(parts);
    queues_[channel].push_back(transfer.get());
    const TransferId id = Keep(std::move(transfer));
    SIPHON_RETURN_IF_ERROR(StartHeads());
    return id;
  }

  absl::StatusOr<bool> Test(TransferId id) override {
    const auto found = transfers_.find(id.value);
    if (found == transfers_.end()) return UnknownTransfer(id);
    SIPHON_RETURN_IF_ERROR(Progress().status());
    if (!found->second->done) return false;
    std::erase(under_way_, found->second.get());
    const absl::Status status = found->second->status;
    transfers_.erase(found);
    if (!status.ok()) return status;
    return true;
  }

  absl::Status Wait(TransferId id) override {
    for (int idle = 0;;) {
      SIPHON_ASSIGN_OR_RETURN(const bool done, Test(id));
      if (done) return absl::OkStatus();
      SIPHON_RETURN_IF_ERROR(check_.CheckIfDue());
      SIPHON_ASSIGN_OR_RETURN(const bool moved, Progress());
      if (moved) {
        idle = 0;
      } else if (++idle < kYieldsBeforeNap) {
        sched_yield();
      } else {
        const timespec nap{.tv_sec = 0, .tv_nsec = kNapNanoseconds};
        nanosleep(&nap, nullptr);
      }
    }
  }

 private:
  static MutablePart BytesOf(Words& words) {
    return {reinterpret_cast<std::byte*>(words.data()), words.size() * sizeof(uint64_t)};
  }

  TransferId Keep(std::unique_ptr<Transfer> transfer) {
    const TransferId id{next_id_++};
    under_way_.push_back(transfer.get());
    transfers_.emplace(id.value, std::move(transfer));
    return id;
  }

  // Starts sending or receiving `bytes`, in pieces, as the next of the transfer's MPI messages.
  absl::Status Post(Transfer& transfer, MutablePart bytes) {
    const MPI_Comm comm = comms_[static_cast<size_t>(transfer.channel.lane)];
    const bool sends = transfer.channel.from == me_;
    for (size_t offset = 0; offset < bytes.size(); offset += static_cast<size_t>(piece_.value)) {
      const int count =
          static_cast<int>(std::min(bytes.size() - offset, static_cast<size_t>(piece_.value)));
      std::byte* data = bytes.data() + offset;
      transfer.requests.push_back(MPI_REQUEST_NULL);
      MPI_Request* request = &transfer.requests.back();
      const int code =
          sends
              ? MPI_Isend(data, count, MPI_BYTE, transfer.channel.to.value, kTag, comm, request)
              : MPI_Irecv(data, count, MPI_BYTE, transfer.channel.from.value, kTag, comm, request);
      SIPHON_RETURN_IF_ERROR(MpiStatus(code, ToString(transfer.channel)));
    }
    return absl::OkStatus();
  }

  // MPI matches in the order of posting. So a receive may post its head only when the one before it
  // has posted its parts.
  absl::Status StartHeads() {
    for (auto& [channel, queue] : queues_) {
      if (queue.empty() || queue.front()->phase != Transfer::Phase::kQueued) continue;
      Transfer& transfer = *queue.front();
      if (const auto broken = broken_.find(channel); broken != broken_.end()) {
        transfer.status = broken->second;
        transfer.done = true;
        queue.pop_front();
        continue;
      }
      transfer.phase = Transfer::Phase::kHead;
      transfer.head.assign(kHeadWords, 0);
      SIPHON_RETURN_IF_ERROR(Post(transfer, BytesOf(transfer.head)));
    }
    return absl::OkStatus();
  }

  // Whether anything was completed.
  absl::StatusOr<bool> Progress() {
    bool moved = false;
    SIPHON_RETURN_IF_ERROR(StartHeads());
    for (size_t index = 0; index < under_way_.size();) {
      Transfer& transfer = *under_way_[index];
      if (!transfer.done && transfer.phase != Transfer::Phase::kQueued) {
        int complete = 0;
        const int code = MPI_Testall(static_cast<int>(transfer.requests.size()),
                                     transfer.requests.data(), &complete, MPI_STATUSES_IGNORE);
        SIPHON_RETURN_IF_ERROR(MpiStatus(code, ToString(transfer.channel)));
        if (complete != 0) {
          moved = true;
          transfer.requests.clear();
          SIPHON_RETURN_IF_ERROR(GoOn(transfer));
        }
      }
      if (transfer.done) {
        under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(index));
      } else {
        ++index;
      }
    }
    return moved;
  }

  // The messages of a phase have come: the next one, or the end.
  absl::Status GoOn(Transfer& transfer) {
    if (transfer.phase == Transfer::Phase::kParts) {
      transfer.done = true;
      return absl::OkStatus();
    }
    const size_t expected = transfer.sizes.parts.size();
    if (transfer.phase == Transfer::Phase::kHead && transfer.head[1] == expected &&
        expected > kSizesInHead) {
      transfer.phase = Transfer::Phase::kRest;
      transfer.rest.assign(expected - kSizesInHead, 0);
      return Post(transfer, BytesOf(transfer.rest));
    }
    if (absl::Status agreed = CheckSizes(transfer); !agreed.ok()) {
      broken_[transfer.channel] = agreed;
      transfer.status = agreed;
      transfer.done = true;
    } else {
      transfer.phase = Transfer::Phase::kParts;
      for (const MutablePart part : transfer.destination) {
        SIPHON_RETURN_IF_ERROR(Post(transfer, part));
      }
      transfer.done = transfer.requests.empty();
    }
    queues_[transfer.channel].pop_front();
    return StartHeads();
  }

  static absl::Status CheckSizes(const Transfer& transfer) {
    const std::vector<int64_t>& expected = transfer.sizes.parts;
    if (transfer.head[1] != expected.size()) {
      return absl::FailedPreconditionError(absl::StrCat(
          ToString(transfer.channel), ": the message has ", transfer.head[1], " parts of ",
          transfer.head[0], " bytes, the receiver expects ", ToString(transfer.sizes)));
    }
    MessageSizes sent;
    for (size_t part = 0; part < expected.size(); ++part) {
      sent.parts.push_back(static_cast<int64_t>(
          part < kSizesInHead ? transfer.head[2 + part] : transfer.rest[part - kSizesInHead]));
    }
    if (sent == transfer.sizes) return absl::OkStatus();
    return SizeMismatch(transfer.channel, sent, transfer.sizes);
  }

  // Takes back what is under way; false if MPI does not give it back at once.
  static bool Withdraw(Transfer& transfer) {
    bool free = true;
    for (MPI_Request& request : transfer.requests) {
      if (request == MPI_REQUEST_NULL) continue;
      int complete = 0;
      MPI_Cancel(&request);
      MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
      free = free && complete != 0;
    }
    return free;
  }

  const WorkerId me_;
  const int workers_;
  const LaneComms comms_;
  PacedCheck check_;
  const Bytes piece_;
  int64_t next_id_ = 1;
  absl::flat_hash_map<int64_t, std::unique_ptr<Transfer>> transfers_;
  std::vector<Transfer*> under_way_;                 // in the order of their start
  std::map<Channel, std::deque<Transfer*>> queues_;  // receives whose parts are not posted yet
  std::map<Channel, absl::Status> broken_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MpiWorld::MakeMpiTransport(LivenessCheck check,
                                                                      Bytes piece) {
  if (piece.value < 1 || piece > kMpiPieceBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("pieces of ", piece.value, " bytes; MPI takes 1 to ", kMpiPieceBytes.value));
  }
  LaneComms comms;
  for (MPI_Comm& comm : comms) {
    SIPHON_RETURN_IF_ERROR(MpiStatus(MPI_Comm_dup(impl_->job, &comm), "MPI_Comm_dup"));
  }
  impl_->lanes.push_back(comms);
  return std::make_unique<MpiTransport>(WorkerId(rank()), size(), comms, std::move(check), piece);
}

}  // namespace siphon
