#include "launch/run/parking/throttle_messages.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "launch/run/parking/parking_room.h"
#include "launch/run/parking/topology_ways.h"
#include "pipeline/transport/paced_transport.h"
#include "swap/device/copy_clock.h"

namespace siphon {
namespace {

// The same as that of copies, since both book the same ways.
PaceClock SteadyPaceClock() {
  const auto now = SteadyCopyClock().now;
  return {now, [now](Nanos until) {
            const Nanos left = until - now();
            if (left > Nanos(0)) std::this_thread::sleep_for(std::chrono::nanoseconds(left.value));
          }};
}

}  // namespace

std::unique_ptr<Transport> ThrottleMessages(const PreparedJob& prepared,
                                            std::unique_ptr<Transport> transport,
                                            absl::Span<std::byte> shared) {
  if (!prepared.throttled.has_value() || shared.empty()) return transport;
  const SharedRegion region = LayOutShared(prepared);
  const int workers = WorkerCount(prepared.plan.training);
  const TopologyWays ways(*prepared.throttled);
  const MessageArrival arrival =
      [ways, devices = prepared.plan_text.mapping.device_of_worker,
       taken = SharedWays(ways.ways(), shared.subspan(region.ways.value, region.ways_bytes.value))](
          const Channel& channel, Bytes bytes, Nanos begin) {
        const auto device = [&](WorkerId worker) {
          return devices.empty() ? DeviceId(worker.value) : devices[worker.value];
        };
        const std::optional<LinkRoute> route =
            ways.Between(device(channel.from), device(channel.to));
        if (!route.has_value()) return begin;
        const Nanos first = begin + route->speed.latency;
        return std::max(first + MovingTime(bytes, route->speed.rate),
                        taken.Book(route->over, bytes, first));
      };
  return PaceTransport(std::move(transport),
                       MessagePosts(workers, shared.subspan(region.posts.value)), arrival,
                       SteadyPaceClock());
}

}  // namespace siphon
