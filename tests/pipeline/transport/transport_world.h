#ifndef SIPHON_TESTS_PIPELINE_TRANSPORT_TRANSPORT_WORLD_H_
#define SIPHON_TESTS_PIPELINE_TRANSPORT_TRANSPORT_WORLD_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "pipeline/transport/all_gather.h"
#include "pipeline/transport/transport.h"
#include "planner/keyed_hash.h"

namespace siphon {

// What one worker does with its transport. Assertions in it are EXPECT_*, since it runs in any
// thread.
using WorkerBody = std::function<void(WorkerId me, Transport& transport)>;

// A way to have `workers` workers with a transport each. `run` runs the body on every worker at
// once and returns when all that run in this process have returned; transports live until then. All
// pairs and lanes exist.
struct World {
  std::string name;
  int workers = 2;
  std::function<void(int workers, const LivenessCheck& check, const WorkerBody& body)> run;
  // Bytes of the longest message, far more than a ring holds: processes take turns for each
  // ringful.
  int64_t longest = (1 << 20) + 3;
};

inline std::string WorldName(const testing::TestParamInfo<World>& info) { return info.param.name; }
inline void PrintTo(const World& world, std::ostream* out) { *out << world.name; }

// Bytes that no other message has at the same place.
inline std::vector<std::byte> Pattern(uint64_t message, int64_t size) {
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  KeyedGenerator generator(message);
  uint64_t word = 0;
  for (size_t index = 0; index < bytes.size(); ++index) {
    if (index % 8 == 0) word = generator.Next();
    bytes[index] = static_cast<std::byte>(word >> (index % 8 * 8));
  }
  return bytes;
}

class TransportConformance : public testing::TestWithParam<World> {
 protected:
  int workers() const { return GetParam().workers; }

  // Runs the body with a barrier behind it, so that nobody leaves while others still talk to it.
  void Run(const WorkerBody& body) {
    GetParam().run(workers(), nullptr, [&](WorkerId me, Transport& transport) {
      body(me, transport);
      Barrier(me, transport);
    });
  }

  void Barrier(WorkerId me, Transport& transport) {
    const auto gathered =
        AllGather(transport, me, std::vector<int64_t>(static_cast<size_t>(workers()), 0), {});
    EXPECT_TRUE(gathered.ok()) << gathered.status();
  }

  static TransferId Send(Transport& transport, const Channel& channel,
                         std::vector<ConstPart> parts) {
    const auto transfer = transport.StartSend(channel, std::move(parts));
    EXPECT_TRUE(transfer.ok()) << transfer.status();
    return transfer.value_or(TransferId{});
  }
  static TransferId Receive(Transport& transport, const Channel& channel,
                            std::vector<MutablePart> parts) {
    const auto transfer = transport.StartReceive(channel, std::move(parts));
    EXPECT_TRUE(transfer.ok()) << transfer.status();
    return transfer.value_or(TransferId{});
  }
  static void Finish(Transport& transport, TransferId transfer) {
    const absl::Status status = transport.Wait(transfer);
    EXPECT_TRUE(status.ok()) << status;
  }
};

inline constexpr WorkerId kFirst{0};
inline constexpr WorkerId kSecond{1};

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_TRANSPORT_TRANSPORT_WORLD_H_
