#include "pipeline/synthetic/pace_transports.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "pipeline/transport/paced_transport.h"
#include "swap/device/shared_ways.h"

namespace siphon {
namespace {

// With the memory that all of them write their posts into.
class PacedInProcess final : public Transport {
 public:
  using Memory = std::shared_ptr<std::vector<int64_t>>;  // of all transports, until the last goes
  PacedInProcess(Memory memory, std::unique_ptr<Transport> paced)
      : memory_(std::move(memory)), paced_(std::move(paced)) {}

  absl::StatusOr<TransferId> StartSend(const Channel& channel,
                                       std::vector<ConstPart> parts) override {
    return paced_->StartSend(channel, std::move(parts));
  }
  absl::StatusOr<TransferId> StartReceive(const Channel& channel,
                                          std::vector<MutablePart> parts) override {
    return paced_->StartReceive(channel, std::move(parts));
  }
  absl::StatusOr<bool> Test(TransferId id) override { return paced_->Test(id); }
  absl::Status Wait(TransferId id) override { return paced_->Wait(id); }

 private:
  const Memory memory_;
  const std::unique_ptr<Transport> paced_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> PaceTransports(
    std::vector<std::unique_ptr<Transport>> transports, MessageRateOf rate_of, WorkClock clock) {
  const int workers = static_cast<int>(transports.size());
  const auto bytes = static_cast<size_t>(MessagePosts::BytesFor(workers).value);
  const auto memory = std::make_shared<std::vector<int64_t>>(bytes / sizeof(int64_t));
  const MessagePosts posts(workers,
                           absl::MakeSpan(reinterpret_cast<std::byte*>(memory->data()), bytes));
  const MessageArrival arrival = [rate_of](const Channel& channel, Bytes size, Nanos begin) {
    const CopyLinkRate link = rate_of(channel);
    return begin + link.latency + MovingTime(size, link.rate);
  };
  for (std::unique_ptr<Transport>& transport : transports) {
    transport = std::make_unique<PacedInProcess>(
        memory,
        PaceTransport(std::move(transport), posts, arrival, {clock.now, clock.sleep_until}));
  }
  return transports;
}

}  // namespace siphon
