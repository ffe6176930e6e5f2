#include "pipeline/transport/nccl_transport.h"

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "pipeline/transport/message_sizes.h"
#include "pipeline/transport/nccl_connect.h"
#include "pipeline/transport/nccl_records.h"
#include "planner/status.h"
#include "swap/device/cuda_status.h"

namespace siphon {
namespace {

using DeviceParts = std::vector<absl::Span<std::byte>>;

// How long a worker that leaves lets its last messages get away.
constexpr Nanos kClosingPatience{int64_t{5} * 1'000'000'000};
// A message gets onto its stream without its peer, in about 50 us.
constexpr Nanos kLaunchPatience{int64_t{60} * 1'000'000'000};

struct Line;

// One started send or receive between devices.
struct Transfer {
  Line* line = nullptr;
  int64_t number = 0;
  MessageSizes sizes;
  cudaEvent_t event = nullptr;  // none: nothing to move, or it has fired
  bool announced = false;       // the other end has started it with the same sizes, as far as known
  bool done = false;
  absl::Status status;
};

// This worker's end of one channel.
struct Line {
  Channel channel;
  bool sends = false;
  std::unique_ptr<NcclCommunicator> communicator;
  int64_t started = 0;
  std::deque<Transfer*> queue;          // under way
  std::map<int64_t, NcclRecord> early;  // announced, and not started here
};

std::string Describe(const Transfer& transfer) {
  return absl::StrCat(ToString(transfer.line->channel), ": message ", transfer.number, ", ",
                      ToString(transfer.sizes));
}

class NcclTransport final : public Transport {
 public:
  NcclTransport(const NcclTransportOptions& options, std::unique_ptr<Transport> host,
                LivenessCheck check)
      : options_(options),
        check_(std::move(check)),
        records_(host.get(), options.me),
        host_(std::move(host)),
        events_(options.device) {}

  ~NcclTransport() override {
    AbortLines([](const Line& line) { return !line.queue.empty(); });  // nobody waits any more
    for (auto& [channel, line] : lines_) line.communicator->StartClosing();
    NcclPatience wait(kClosingPatience, options_.poll, no_check_);
    for (auto& [channel, line] : lines_) line.communicator->Close(wait);
    lines_.clear();  // nothing touches anybody's memory any more
    for (auto& [id, transfer] : transfers_) GiveBack(*transfer);
  }

  struct DeviceMemory {
    Bytes taken;
    Bytes free;
  };
  // Returns what the device has lost meanwhile, and has left.
  absl::StatusOr<DeviceMemory> Connect(const NcclApi& api) {
    for (const Channel& channel : options_.channels) {
      const WorkerId end = channel.from == options_.me ? channel.from : channel.to;
      SIPHON_RETURN_IF_ERROR(
          CheckChannel(channel, end == channel.from ? ChannelEnd::kSender : ChannelEnd::kReceiver,
                       end, options_.workers));
    }
    SIPHON_ASSIGN_OR_RETURN(const Bytes before, FreeMemory());
    SIPHON_ASSIGN_OR_RETURN(std::vector<NcclConnection> connections,
                            Explained(ConnectNccl(options_, api, *host_, events_, check_, ids_)));
    SIPHON_ASSIGN_OR_RETURN(const Bytes after, FreeMemory());
    std::set<WorkerId> peers;
    for (NcclConnection& connection : connections) {
      const Channel channel = connection.channel;
      const bool sends = channel.from == options_.me;
      Line& line = lines_[channel];
      line.channel = channel;
      line.sends = sends;
      line.communicator = std::move(connection.communicator);
      peers.insert(sends ? channel.to : channel.from);
    }
    for (const WorkerId peer : peers) SIPHON_RETURN_IF_ERROR(records_.Listen(peer));
    return DeviceMemory{.taken = std::max(before - after, Bytes(0)), .free = after};
  }

  absl::StatusOr<TransferId> StartSend(const Channel& channel,
                                       std::vector<ConstPart> parts) override {
    DeviceParts all;
    for (const ConstPart part : parts) {
      all.emplace_back(const_cast<std::byte*>(part.data()), part.size());  // NCCL only reads them
    }
    SIPHON_ASSIGN_OR_RETURN(Line * line, Route(channel, ChannelEnd::kSender, all));
    return line == nullptr ? Remember(host_->StartSend(channel, std::move(parts)))
                           : Start(*line, all);
  }

  absl::StatusOr<TransferId> StartReceive(const Channel& channel,
                                          std::vector<MutablePart> parts) override {
    SIPHON_ASSIGN_OR_RETURN(Line * line, Route(channel, ChannelEnd::kReceiver, parts));
    return line == nullptr ? Remember(host_->StartReceive(channel, std::move(parts)))
                           : Start(*line, parts);
  }

  bool SendsKeepDeviceBusy() const override { return true; }

  absl::StatusOr<bool> Test(TransferId id) override {
    Look();
    if (const auto found = host_transfers_.find(id.value); found != host_transfers_.end()) {
      absl::StatusOr<bool> done = host_->Test(found->second);
      if (!done.ok() || *done) host_transfers_.erase(found);
      return done;
    }
    const auto found = transfers_.find(id.value);
    if (found == transfers_.end()) return UnknownTransfer(id);
    if (!found->second->done) return false;
    SIPHON_RETURN_IF_ERROR(Forget(found));
    return true;
  }

  absl::Status Wait(TransferId id) override {
    if (const auto found = host_transfers_.find(id.value); found != host_transfers_.end()) {
      const TransferId transfer = found->second;
      host_transfers_.erase(found);
      return host_->Wait(transfer);
    }
    const auto found = transfers_.find(id.value);
    if (found == transfers_.end()) return UnknownTransfer(id);
    const Transfer& transfer = *found->second;
    NcclPatience patience(options_.message_patience, options_.poll, check_);
    while (true) {
      Look();
      if (transfer.done) return Forget(found);
      if (const absl::Status turn = patience.Turn(); !turn.ok()) {
        Fail(absl::IsDeadlineExceeded(turn) ? Stalled(transfer, turn) : turn);
      }
    }
  }

 private:
  using Transfers = absl::flat_hash_map<int64_t, std::unique_ptr<Transfer>>;

  absl::StatusOr<Bytes> FreeMemory() const {
    const CudaDeviceScope scope(options_.device);
    SIPHON_RETURN_IF_ERROR(scope.status());
    size_t free = 0;
    size_t total = 0;
    SIPHON_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free, &total),
                                "asking how much memory of the device is free");
    return Bytes(static_cast<int64_t>(free));
  }

  // The line that a message takes; null: the host's transport.
  absl::StatusOr<Line*> Route(const Channel& channel, ChannelEnd end, const DeviceParts& parts) {
    SIPHON_RETURN_IF_ERROR(CheckChannel(channel, end, options_.me, options_.workers));
    const auto found = lines_.find(channel);
    const auto first = std::find_if(parts.begin(), parts.end(),
                                    [](absl::Span<std::byte> part) { return !part.empty(); });
    bool on_device = first != parts.end();
    if (on_device) {
      cudaPointerAttributes attributes;
      SIPHON_CUDA_RETURN_IF_ERROR(cudaPointerGetAttributes(&attributes, first->data()),
                                  "asking where a message's memory is");
      on_device = attributes.type == cudaMemoryTypeDevice;
    }
    if (channel.lane == Lane::kControl && !on_device) return nullptr;
    if (found == lines_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("no communicator was made for ",
                                                     ToString(channel), "; worker ",
                                                     options_.me.value, " has ", lines_.size()));
    }
    if (!on_device && first != parts.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(ToString(channel), ": NCCL moves memory of devices, this is the host's"));
    }
    return &found->second;
  }

  absl::StatusOr<TransferId> Remember(absl::StatusOr<TransferId> started) {
    if (!started.ok()) return started;
    const TransferId id{next_id_++};
    host_transfers_[id.value] = *started;
    return id;
  }

  absl::StatusOr<TransferId> Start(Line& line, const DeviceParts& parts) {
    const TransferId id{next_id_++};
    auto& slot = transfers_[id.value];
    slot = std::make_unique<Transfer>();
    Transfer& transfer = *slot;
    transfer.line = &line;
    transfer.number = line.started++;
    transfer.sizes = SizesOf(parts);
    transfer.announced = line.sends;
    line.queue.push_back(&transfer);
    const absl::Status begun = Begin(line, transfer, parts);
    if (!begun.ok()) FailUnlessExplained(begun);
    Look();
    return id;
  }

  // Errors are those of everything; what is wrong with the message is the transfer's status.
  absl::Status Begin(Line& line, Transfer& transfer, const DeviceParts& parts) {
    if (!failed_.ok()) {
      Finish(transfer, failed_);
      return absl::OkStatus();
    }
    if (line.sends) {
      SIPHON_RETURN_IF_ERROR(
          records_.Send(line.channel.to, RecordOf(NcclRecord::Kind::kStarted, line.channel.lane,
                                                  transfer.number, transfer.sizes)));
    } else if (const auto early = line.early.find(transfer.number); early != line.early.end()) {
      const NcclRecord record = early->second;
      line.early.erase(early);
      Compare(transfer, record);
      if (transfer.done) return absl::OkStatus();
    }
    DeviceParts moved;
    for (const absl::Span<std::byte> part : parts) {
      if (!part.empty()) moved.push_back(part);
    }
    if (moved.empty()) return absl::OkStatus();
    NcclPatience patience(kLaunchPatience, options_.poll, no_check_);
    auto event =
        Explained(line.communicator->Launch(moved, options_.work_stream, events_, patience));
    if (!event.ok()) return Annotate(event.status(), Describe(transfer));
    transfer.event = *event;
    return absl::OkStatus();
  }

  absl::Status CauseOf(const absl::Status& met) {
    return siphon::CauseOf(met, NcclPatience(options_.loss_patience, options_.poll, check_));
  }
  template <typename T>
  absl::StatusOr<T> Explained(absl::StatusOr<T> met) {
    if (met.ok()) return met;
    return CauseOf(met.status());
  }

  // Looks at everything that is under way.
  void Look() {
    if (!failed_.ok()) return;
    absl::Status status =
        records_.Poll([this](WorkerId from, const NcclRecord& record) { Take(from, record); });
    for (auto& [channel, line] : lines_) {
      if (!status.ok()) break;
      if (line.queue.empty()) continue;
      status = CauseOf(line.communicator->Check());
      while (status.ok() && !line.queue.empty()) {
        Transfer& oldest = *line.queue.front();
        const absl::StatusOr<bool> arrived = HasMoved(oldest);
        status = arrived.status();
        if (!status.ok() || !*arrived || !oldest.announced) break;
        Finish(oldest, absl::OkStatus());
      }
    }
    if (!status.ok()) FailUnlessExplained(status);
  }

  absl::StatusOr<bool> HasMoved(Transfer& transfer) {
    if (transfer.event == nullptr) return true;
    SIPHON_ASSIGN_OR_RETURN(const bool fired, HasFired(transfer.event));
    if (fired) GiveBack(transfer);
    return fired;
  }

  void Take(WorkerId from, const NcclRecord& record) {
    const Lane lane = static_cast<Lane>(record.lane);
    const bool refused = record.kind == NcclRecord::Kind::kRefused;
    const auto found =
        lines_.find(refused ? Channel{options_.me, from, lane} : Channel{from, options_.me, lane});
    if (found == lines_.end()) return;
    Line& line = found->second;
    if (refused) {
      return Fail(absl::FailedPreconditionError(absl::StrCat(
          ToString(line.channel), ": the receiver expected message ", record.number, " to have ",
          record.parts, record.parts == 1 ? " part of " : " parts of ", record.bytes, " bytes")));
    }
    for (Transfer* transfer : line.queue) {
      if (transfer->number == record.number) return Compare(*transfer, record);
    }
    line.early[record.number] = record;
  }

  // At the receiver: what the sender sends, beside what is expected.
  void Compare(Transfer& transfer, const NcclRecord& sent) {
    Line& line = *transfer.line;
    if (HasSizes(sent, transfer.sizes)) {
      transfer.announced = true;
      return;
    }
    const absl::Status told = records_.Send(
        line.channel.from,
        RecordOf(NcclRecord::Kind::kRefused, line.channel.lane, transfer.number, transfer.sizes));
    const absl::Status differs = SizeMismatch(line.channel, sent, transfer.sizes);
    Fail(told.ok() ? differs : Annotate(told, differs.message()));
  }

  // What NCCL says of a message of another size ("truncated", over sockets) may be here before
  // what the other end has said of it over the host, which tells more.
  void FailUnlessExplained(const absl::Status& met) {
    const absl::Status told =
        records_.Poll([this](WorkerId from, const NcclRecord& record) { Take(from, record); });
    Fail(told.ok() ? met : Annotate(met, told.message()));
  }

  // No channel carries anything any more.
  void Fail(const absl::Status& status) {
    if (!failed_.ok()) return;
    failed_ = status;
    AbortLines([](const Line&) { return true; });
    for (auto& [channel, line] : lines_) {
      while (!line.queue.empty()) Finish(*line.queue.front(), status);
    }
  }

  void AbortLines(absl::FunctionRef<bool(const Line&)> which) {
    std::vector<NcclCommunicator*> aborted;
    for (auto& [channel, line] : lines_) {
      if (which(line)) aborted.push_back(line.communicator.get());
    }
    NcclCommunicator::AbortTogether(aborted);
  }

  void Finish(Transfer& transfer, const absl::Status& status) {
    transfer.done = true;
    transfer.status = status;
    std::erase(transfer.line->queue, &transfer);
  }

  void GiveBack(Transfer& transfer) {
    if (transfer.event != nullptr) events_.GiveBack(std::exchange(transfer.event, nullptr));
  }

  absl::Status Forget(Transfers::iterator found) {
    const absl::Status status = found->second->status;
    GiveBack(*found->second);
    transfers_.erase(found);
    return status;
  }

  absl::Status Stalled(const Transfer& waited, const absl::Status& deadline) const {
    const Line& line = *waited.line;
    std::string text = absl::StrCat(
        Describe(waited), line.sends ? " has not gone: " : " has not come: ", deadline.message());
    if (!line.sends) {
      absl::StrAppend(&text, "; worker ", line.channel.from.value,
                      waited.announced ? " has" : " has not", " started it");
    }
    for (const auto& [channel, other] : lines_) {
      const size_t besides = other.queue.size() - (&other == &line ? 1 : 0);
      if (besides > 0)
        absl::StrAppend(&text, "; under way besides: ", besides, " on ", ToString(channel));
    }
    return absl::UnavailableError(text);
  }

  const NcclTransportOptions options_;
  PacedCheck check_;
  PacedCheck no_check_{nullptr};
  std::list<NcclUniqueId> ids_;
  NcclRecords records_;
  const std::unique_ptr<Transport> host_;  // goes before what it may still read and write
  CudaEventPool events_;
  std::map<Channel, Line> lines_;
  absl::Status failed_;
  int64_t next_id_ = 1;
  absl::flat_hash_map<int64_t, TransferId> host_transfers_;
  Transfers transfers_;
};

}  // namespace

absl::StatusOr<NcclTransportMade> MakeNcclTransport(const NcclTransportOptions& options,
                                                    std::unique_ptr<Transport> host,
                                                    LivenessCheck check) {
  SIPHON_ASSIGN_OR_RETURN(const NcclApi* api, LoadNccl(options.library));
  auto transport = std::make_unique<NcclTransport>(options, std::move(host), std::move(check));
  SIPHON_ASSIGN_OR_RETURN(const auto memory, transport->Connect(*api));
  return NcclTransportMade{
      .transport = std::move(transport), .device_memory = memory.taken, .device_free = memory.free};
}

}  // namespace siphon
