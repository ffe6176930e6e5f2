#include "pipeline/transport/nccl_connect.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/cuda_status.h"

namespace siphon {
namespace {

// Memory of the device that the first byte of each channel comes from and goes to.
class FirstByte {
 public:
  FirstByte() = default;
  ~FirstByte() { static_cast<void>(cudaFree(memory_)); }
  FirstByte(const FirstByte&) = delete;
  FirstByte& operator=(const FirstByte&) = delete;

  absl::Status Take() {
    return CudaStatus(cudaMalloc(&memory_, 1), "taking memory for the first messages over NCCL");
  }
  absl::Span<std::byte> byte() const { return {static_cast<std::byte*>(memory_), 1}; }

 private:
  void* memory_ = nullptr;
};

class Connector {
 public:
  Connector(const NcclTransportOptions& options, const NcclApi& api, Transport& host,
            CudaEventPool& events, PacedCheck& check, std::list<NcclUniqueId>& ids)
      : options_(options), api_(api), host_(host), events_(events), check_(check), ids_(ids) {}

  absl::Status Prepare() { return byte_.Take(); }

  absl::StatusOr<NcclConnection> Connect(const Channel& channel) {
    const bool sends = channel.from == options_.me;
    SIPHON_ASSIGN_OR_RETURN(const NcclUniqueId id, ExchangeId(channel, sends));
    SIPHON_ASSIGN_OR_RETURN(
        std::unique_ptr<NcclCommunicator> communicator,
        NcclCommunicator::Join(api_, id,
                               {.end = sends ? NcclEnd::kSender : NcclEnd::kReceiver,
                                .device = options_.device,
                                .max_ctas = options_.max_ctas,
                                .name = ToString(channel)},
                               Patience()));
    SIPHON_ASSIGN_OR_RETURN(
        const cudaEvent_t arrived,
        communicator->Launch({byte_.byte()}, std::nullopt, events_, Patience()));
    const absl::Status first = AwaitFirst(*communicator, arrived);
    events_.GiveBack(arrived);
    SIPHON_RETURN_IF_ERROR(Annotate(first, "the first message"));
    return NcclConnection{channel, std::move(communicator)};
  }

 private:
  NcclPatience Patience() { return {options_.connect_patience, options_.poll, check_}; }

  absl::StatusOr<NcclUniqueId> ExchangeId(const Channel& channel, bool sends) {
    NcclUniqueId& id = ids_.emplace_back();
    if (sends) {
      SIPHON_RETURN_IF_ERROR(
          NcclStatus(api_, api_.get_unique_id(&id), nullptr, "asking for a communicator's id"));
    }
    const Channel way{channel.from, channel.to, Lane::kForward};
    const MutablePart bytes(reinterpret_cast<std::byte*>(id.bytes), sizeof(id.bytes));
    SIPHON_ASSIGN_OR_RETURN(const TransferId transfer, sends ? host_.StartSend(way, {bytes})
                                                             : host_.StartReceive(way, {bytes}));
    NcclPatience patience = Patience();
    while (true) {
      SIPHON_ASSIGN_OR_RETURN(const bool done, host_.Test(transfer));
      if (done) return id;
      SIPHON_RETURN_IF_ERROR(patience.Turn());
    }
  }

  absl::Status AwaitFirst(const NcclCommunicator& communicator, cudaEvent_t arrived) {
    NcclPatience patience = Patience();
    while (true) {
      SIPHON_ASSIGN_OR_RETURN(const bool fired, HasFired(arrived));
      if (fired) return absl::OkStatus();
      SIPHON_RETURN_IF_ERROR(communicator.Check());
      SIPHON_RETURN_IF_ERROR(patience.Turn());
    }
  }

  const NcclTransportOptions& options_;
  const NcclApi& api_;
  Transport& host_;
  CudaEventPool& events_;
  PacedCheck& check_;
  std::list<NcclUniqueId>& ids_;
  FirstByte byte_;
};

// What the user reads about a peer that has not come.
absl::Status NoPeer(const Channel& channel, WorkerId me, const absl::Status& status) {
  const WorkerId peer = channel.from == me ? channel.to : channel.from;
  const std::string text = absl::StrCat("connecting ", ToString(channel), " by NCCL");
  if (!absl::IsDeadlineExceeded(status)) return Annotate(status, text);
  return absl::UnavailableError(
      absl::StrCat(text, ": worker ", peer.value, " did not come: ", status.message()));
}

}  // namespace

// Every worker takes its channels in the order of one list of all, so that the first channel of it
// that is not connected always has both its workers.
std::vector<Channel> NcclOrder(WorkerId me, std::vector<Channel> channels) {
  std::erase_if(channels, [me](const Channel& each) { return each.from != me && each.to != me; });
  const auto place = [](const Channel& channel) {
    const int low = std::min(channel.from, channel.to).value;
    return std::tuple(low % 2, low, channel);
  };
  std::sort(channels.begin(), channels.end(),
            [&](const Channel& a, const Channel& b) { return place(a) < place(b); });
  channels.erase(std::unique(channels.begin(), channels.end()), channels.end());
  return channels;
}

absl::StatusOr<std::vector<NcclConnection>> ConnectNccl(const NcclTransportOptions& options,
                                                        const NcclApi& api, Transport& host,
                                                        CudaEventPool& events, PacedCheck& check,
                                                        std::list<NcclUniqueId>& ids) {
  const CudaDeviceScope scope(options.device);
  SIPHON_RETURN_IF_ERROR(scope.status());
  Connector connector(options, api, host, events, check, ids);
  SIPHON_RETURN_IF_ERROR(connector.Prepare());
  std::vector<NcclConnection> connections;
  for (const Channel& channel : NcclOrder(options.me, options.channels)) {
    auto connection = connector.Connect(channel);
    if (!connection.ok()) return NoPeer(channel, options.me, connection.status());
    connections.push_back(*std::move(connection));
  }
  return connections;
}

}  // namespace siphon
