#ifndef SIPHON_TESTS_PIPELINE_TRANSPORT_TRANSPORT_CONFORMANCE_H_
#define SIPHON_TESTS_PIPELINE_TRANSPORT_TRANSPORT_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/pipeline/transport/transport_refusals.h"
#include "tests/pipeline/transport/transport_world.h"

// What every transport must do, written once. A test program includes this file, and instantiates
// the suite with its worlds: INSTANTIATE_TEST_SUITE_P(Ring, TransportConformance,
// testing::Values(World{...}), WorldName).

namespace siphon {

inline constexpr Lane kLanes[] = {Lane::kForward, Lane::kBackward, Lane::kControl};
// Below, at and above a cache line and the rings of the tests (4 KiB).
inline constexpr int64_t kSizes[] = {0, 1, 63, 64, 65, 4096, 4096 + 1};

TEST_P(TransportConformance, CarriesEverySizeUnchanged) {
  Run([&](WorkerId me, Transport& transport) {
    for (const Lane lane : kLanes) {
      const Channel channel{kFirst, kSecond, lane};
      std::vector<int64_t> sizes(std::begin(kSizes), std::end(kSizes));
      sizes.push_back(GetParam().longest);
      for (const int64_t size : sizes) {
        const std::vector<std::byte> message = Pattern(static_cast<uint64_t>(size) + 1, size);
        if (me == kFirst) Finish(transport, Send(transport, channel, {message}));
        if (me != kSecond) continue;
        std::vector<std::byte> received(message.size(), std::byte{0xEE});
        Finish(transport, Receive(transport, channel, {MutablePart(received)}));
        EXPECT_TRUE(received == message) << size << " bytes on lane " << LaneName(lane);
      }
    }
  });
}

TEST_P(TransportConformance, CarriesSeveralPartsWithEmptyOnesAmongThem) {
  const std::vector<int64_t> sizes = {0, 100, 0, 5000, 64, 0};
  Run([&](WorkerId me, Transport& transport) {
    const Channel channel{kFirst, kSecond, Lane::kForward};
    std::vector<std::vector<std::byte>> sent, received;
    for (const int64_t size : sizes) {
      sent.push_back(Pattern(static_cast<uint64_t>(size), size));
      received.emplace_back(static_cast<size_t>(size));
    }
    if (me == kFirst) Finish(transport, Send(transport, channel, {sent.begin(), sent.end()}));
    if (me != kSecond) return;
    Finish(transport, Receive(transport, channel, {received.begin(), received.end()}));
    EXPECT_TRUE(received == sent);
  });
}

TEST_P(TransportConformance, CarriesAMessageWithoutParts) {
  Run([&](WorkerId me, Transport& transport) {
    const Channel channel{kFirst, kSecond, Lane::kForward};
    if (me == kFirst) Finish(transport, Send(transport, channel, {}));
    if (me == kSecond) Finish(transport, Receive(transport, channel, {}));
  });
}

TEST_P(TransportConformance, CarriesAMessageOfManyParts) {
  Run([&](WorkerId me, Transport& transport) {
    const Channel channel{kFirst, kSecond, Lane::kForward};
    const std::vector<std::byte> sent = Pattern(5, 100);
    std::vector<std::byte> received(sent.size());
    if (me == kFirst) {
      std::vector<ConstPart> parts;
      for (size_t part = 0; part < sent.size(); ++part)
        parts.push_back(ConstPart(sent).subspan(part, 1));
      Finish(transport, Send(transport, channel, parts));
    }
    if (me != kSecond) return;
    std::vector<MutablePart> parts;
    for (size_t part = 0; part < sent.size(); ++part)
      parts.push_back(MutablePart(received).subspan(part, 1));
    Finish(transport, Receive(transport, channel, parts));
    EXPECT_TRUE(received == sent);
  });
}

TEST_P(TransportConformance, KeepsTheOrderOfAChannelWithManyMessagesBothWays) {
  constexpr int kMessages = 60;
  Run([&](WorkerId me, Transport& transport) {
    if (me != kFirst && me != kSecond) return;
    const WorkerId peer = me == kFirst ? kSecond : kFirst;
    const auto size_of = [](int message) { return int64_t{message % 5} * 700; };
    const auto key_of = [](WorkerId from, int message) {
      return static_cast<uint64_t>(from.value * 1000 + message);
    };
    std::vector<std::vector<std::byte>> sent, received;
    std::vector<TransferId> transfers;
    for (int message = 0; message < kMessages; ++message) {
      sent.push_back(Pattern(key_of(me, message), size_of(message)));
      received.emplace_back(static_cast<size_t>(size_of(message)));
    }
    for (int message = 0; message < kMessages; ++message) {
      transfers.push_back(Send(transport, {me, peer, Lane::kForward}, {sent[message]}));
      transfers.push_back(
          Receive(transport, {peer, me, Lane::kForward}, {MutablePart(received[message])}));
    }
    for (const TransferId transfer : transfers) Finish(transport, transfer);
    for (int message = 0; message < kMessages; ++message) {
      EXPECT_TRUE(received[message] == Pattern(key_of(peer, message), size_of(message))) << message;
    }
  });
}

TEST_P(TransportConformance, MayWaitForTransfersInAnyOrder) {
  Run([&](WorkerId me, Transport& transport) {
    const Channel channel{kFirst, kSecond, Lane::kBackward};
    const std::vector<std::byte> early = Pattern(1, 9000), late = Pattern(2, 9000);
    std::vector<std::byte> first(9000), second(9000);
    TransferId one, two;
    if (me == kFirst) {
      one = Send(transport, channel, {early});
      two = Send(transport, channel, {late});
    } else if (me == kSecond) {
      one = Receive(transport, channel, {MutablePart(first)});
      two = Receive(transport, channel, {MutablePart(second)});
    } else {
      return;
    }
    Finish(transport, two);
    Finish(transport, one);
    if (me == kSecond) {
      EXPECT_TRUE(first == early && second == late);
    }
  });
}

TEST_P(TransportConformance, LanesDoNotWaitForEachOther) {
  Run([&](WorkerId me, Transport& transport) {
    const std::vector<std::byte> large = Pattern(1, 1 << 20), small = Pattern(2, 64);
    for (const auto& [blocked, free] :
         {std::pair{Lane::kForward, Lane::kControl}, std::pair{Lane::kControl, Lane::kBackward},
          std::pair{Lane::kBackward, Lane::kForward}}) {
      if (me == kFirst) {
        const TransferId first = Send(transport, {kFirst, kSecond, blocked}, {large});
        Finish(transport, Send(transport, {kFirst, kSecond, free}, {small}));
        Finish(transport, first);
      } else if (me == kSecond) {
        std::vector<std::byte> got_small(small.size()), got_large(large.size());
        Finish(transport, Receive(transport, {kFirst, kSecond, free}, {MutablePart(got_small)}));
        Finish(transport, Receive(transport, {kFirst, kSecond, blocked}, {MutablePart(got_large)}));
        EXPECT_TRUE(got_small == small && got_large == large);
      }
    }
  });
}

TEST_P(TransportConformance, ConnectsAllPairsOnAllLanesAtOnce) {
  constexpr int64_t kSize = 3000;
  Run([&](WorkerId me, Transport& transport) {
    const auto key_of = [](int from, int to, Lane lane) {
      return static_cast<uint64_t>((from * 64 + to) * 4 + static_cast<int>(lane));
    };
    std::vector<std::vector<std::byte>> sent, received;
    std::vector<uint64_t> expected;
    std::vector<TransferId> transfers;
    const size_t others = static_cast<size_t>(workers() - 1) * std::size(kLanes);
    sent.reserve(others);
    received.reserve(others);
    for (const Lane lane : kLanes) {
      for (int peer = 0; peer < workers(); ++peer) {
        if (peer == me.value) continue;
        sent.push_back(Pattern(key_of(me.value, peer, lane), kSize));
        received.emplace_back(static_cast<size_t>(kSize));
        expected.push_back(key_of(peer, me.value, lane));
        transfers.push_back(Send(transport, {me, WorkerId(peer), lane}, {sent.back()}));
        transfers.push_back(
            Receive(transport, {WorkerId(peer), me, lane}, {MutablePart(received.back())}));
      }
    }
    for (const TransferId transfer : transfers) Finish(transport, transfer);
    for (size_t index = 0; index < received.size(); ++index) {
      EXPECT_TRUE(received[index] == Pattern(expected[index], kSize)) << index;
    }
  });
}

// All workers draw the same list of messages, and each does its part of it in order.
TEST_P(TransportConformance, SurvivesRandomTraffic) {
  struct Message {
    Channel channel;
    std::vector<int64_t> sizes;
  };
  KeyedGenerator generator(20240229);
  std::vector<Message> messages;
  for (int message = 0; message < 200; ++message) {
    const int from = static_cast<int>(generator.Below(static_cast<uint64_t>(workers())));
    const int step = 1 + static_cast<int>(generator.Below(static_cast<uint64_t>(workers() - 1)));
    Message next{{WorkerId(from), WorkerId((from + step) % workers()), kLanes[generator.Below(3)]},
                 {}};
    const uint64_t parts = generator.Below(4);
    for (uint64_t part = 0; part < parts; ++part) {
      next.sizes.push_back(
          static_cast<int64_t>(generator.Below(uint64_t{1} << generator.Below(15))));
    }
    messages.push_back(next);
  }
  Run([&](WorkerId me, Transport& transport) {
    std::vector<std::vector<std::vector<std::byte>>> buffers(messages.size());
    std::vector<TransferId> transfers;
    for (size_t index = 0; index < messages.size(); ++index) {
      const auto& [channel, sizes] = messages[index];
      std::vector<std::vector<std::byte>>& parts = buffers[index];
      for (size_t part = 0; part < sizes.size(); ++part) {
        parts.push_back(Pattern(index * 10 + part, channel.from == me ? sizes[part] : 0));
        if (channel.to == me) parts.back().resize(static_cast<size_t>(sizes[part]));
      }
      if (channel.from == me)
        transfers.push_back(Send(transport, channel, {parts.begin(), parts.end()}));
      if (channel.to == me)
        transfers.push_back(Receive(transport, channel, {parts.begin(), parts.end()}));
    }
    for (const TransferId transfer : transfers) Finish(transport, transfer);
    for (size_t index = 0; index < messages.size(); ++index) {
      if (messages[index].channel.to != me) continue;
      for (size_t part = 0; part < messages[index].sizes.size(); ++part) {
        EXPECT_TRUE(buffers[index][part] == Pattern(index * 10 + part, messages[index].sizes[part]))
            << "message " << index << " part " << part;
      }
    }
  });
}

TEST_P(TransportConformance, TestMakesProgressUntilDone) {
  Run([&](WorkerId me, Transport& transport) {
    if (me != kFirst && me != kSecond) return;
    const std::vector<std::byte> message = Pattern(3, 100'000);
    std::vector<std::byte> received(message.size());
    const Channel channel{kFirst, kSecond, Lane::kForward};
    const TransferId transfer = me == kFirst ? Send(transport, channel, {message})
                                             : Receive(transport, channel, {MutablePart(received)});
    absl::StatusOr<bool> done = false;
    while (done.ok() && !*done) {
      std::this_thread::yield();
      done = transport.Test(transfer);
    }
    EXPECT_TRUE(done.ok()) << done.status();
    if (me == kSecond) {
      EXPECT_TRUE(received == message);
    }
    EXPECT_EQ(transport.Test(transfer).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(transport.Wait(transfer).code(), absl::StatusCode::kFailedPrecondition);
  });
}

TEST_P(TransportConformance, AllGatherGivesEveryWorkersBytesToEveryWorker) {
  const auto size_of = [](int worker) { return int64_t{worker % 3} * 2500; };  // some bring nothing
  Run([&](WorkerId me, Transport& transport) {
    std::vector<int64_t> sizes;
    for (int worker = 0; worker < workers(); ++worker) sizes.push_back(size_of(worker));
    for (uint64_t round = 0; round < 3; ++round) {
      const auto key_of = [round](int worker) {
        return round * 100 + static_cast<uint64_t>(worker);
      };
      const std::vector<std::byte> mine = Pattern(key_of(me.value), sizes[me.value]);
      const auto gathered = AllGather(transport, me, sizes, mine);
      ASSERT_TRUE(gathered.ok()) << gathered.status();
      ASSERT_EQ(gathered->size(), sizes.size());
      for (int worker = 0; worker < workers(); ++worker) {
        EXPECT_TRUE((*gathered)[worker] == Pattern(key_of(worker), sizes[worker])) << worker;
      }
    }
    EXPECT_EQ(AllGather(transport, me, sizes, std::vector<std::byte>(1)).status().code(),
              absl::StatusCode::kInvalidArgument);
  });
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_TRANSPORT_TRANSPORT_CONFORMANCE_H_
