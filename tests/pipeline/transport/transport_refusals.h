#ifndef SIPHON_TESTS_PIPELINE_TRANSPORT_TRANSPORT_REFUSALS_H_
#define SIPHON_TESTS_PIPELINE_TRANSPORT_TRANSPORT_REFUSALS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/pipeline/transport/transport_world.h"

// The part of the conformance suite about calls that fail; see transport_conformance.h.

namespace siphon {

TEST_P(TransportConformance, NamesBothSizesWhenTheyDiffer) {
  const std::vector<std::byte> sent = Pattern(1, 128);
  struct Case {
    Channel channel;
    std::vector<ConstPart> parts;
    std::vector<int64_t> expected;
    std::string message_says, receiver_says;
  };
  const ConstPart whole(sent);
  const std::vector<Case> cases = {{{kFirst, kSecond, Lane::kForward},
                                    {whole},
                                    {96},
                                    "1 part of 128 bytes (128)",
                                    "1 part of 96 bytes (96)"},
                                   {{kSecond, kFirst, Lane::kForward},
                                    {whole.subspan(0, 96), whole.subspan(96)},
                                    {64, 64},
                                    "2 parts of 128 bytes (96, 32)",
                                    "2 parts of 128 bytes (64, 64)"},
                                   {{kFirst, kSecond, Lane::kBackward},
                                    {whole.subspan(0, 96), whole.subspan(96)},
                                    {128},
                                    "2 parts of 128 bytes",
                                    "1 part of 128 bytes (128)"},
                                   {{kSecond, kFirst, Lane::kBackward},
                                    {},
                                    {128},
                                    "0 parts of 0 bytes",
                                    "1 part of 128 bytes (128)"}};
  std::vector<std::byte> room(256);  // outlives the transfers that fail
  for (const Case& each : cases) {
    Run([&](WorkerId me, Transport& transport) {
      if (me == each.channel.from) {
        const absl::Status status = transport.Wait(Send(transport, each.channel, each.parts));
        EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
      }
      if (me != each.channel.to) return;
      std::vector<MutablePart> parts;
      for (const int64_t size : each.expected)
        parts.push_back(MutablePart(room).subspan(0, static_cast<size_t>(size)));
      const absl::Status status = transport.Wait(Receive(transport, each.channel, parts));
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(status.message(), testing::HasSubstr(ToString(each.channel)));
      EXPECT_THAT(status.message(), testing::HasSubstr(each.message_says));
      EXPECT_THAT(status.message(), testing::HasSubstr(each.receiver_says));
    });
  }
}

TEST_P(TransportConformance, AWaitEndsWithTheErrorOfTheLivenessCheck) {
  std::vector<std::vector<std::byte>> room(static_cast<size_t>(workers()),
                                           std::vector<std::byte>(64));
  const LivenessCheck lost = [] {
    return absl::UnavailableError("worker 7 has not been heard of");
  };
  GetParam().run(workers(), lost, [&](WorkerId me, Transport& transport) {
    const WorkerId silent((me.value + 1) % workers());
    const TransferId transfer =
        Receive(transport, {silent, me, Lane::kForward}, {MutablePart(room[me.value])});
    EXPECT_EQ(transport.Wait(transfer), lost());
  });
}

TEST_P(TransportConformance, RefusesChannelsThatDoNotExist) {
  Run([&](WorkerId me, Transport& transport) {
    const WorkerId peer((me.value + 1) % workers());
    const auto code_of = [&](Channel sending, Channel receiving) {
      EXPECT_EQ(transport.StartSend(sending, {}).status().code(),
                absl::StatusCode::kInvalidArgument)
          << ToString(sending);
      EXPECT_EQ(transport.StartReceive(receiving, {}).status().code(),
                absl::StatusCode::kInvalidArgument)
          << ToString(receiving);
    };
    code_of({me, me, Lane::kForward}, {me, me, Lane::kForward});
    code_of({me, WorkerId(workers()), Lane::kForward}, {WorkerId(workers()), me, Lane::kForward});
    code_of({me, WorkerId(-1), Lane::kForward}, {WorkerId(-1), me, Lane::kForward});
    code_of({peer, me, Lane::kForward}, {me, peer, Lane::kForward});  // the other end's
  });
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_TRANSPORT_TRANSPORT_REFUSALS_H_
