#include "planner/performance/host_adam.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

ModelProfile Layers(std::initializer_list<int64_t> parameter_bytes) {
  ModelProfile profile;
  for (const int64_t bytes : parameter_bytes) {
    profile.layers.push_back({.parameters = Bytes(bytes)});
  }
  return profile;
}

// A billion parameters in 0.22 s, whatever the bytes of one.
TEST(HostAdamTime, CountsParametersNotBytes) {
  const ModelProfile single = Layers({1'000'000'000, 3'000'000'000});
  EXPECT_EQ(HostAdamTime(single, BytesOfParameter(Precision::kFloat32, 2)), Nanos(220'000'000));
  EXPECT_EQ(HostAdamTime(single, BytesOfParameter(Precision::kBFloat16, 2)), Nanos(440'000'000));
  EXPECT_EQ(HostAdamTime(Layers({}), BytesOfParameter(Precision::kBFloat16, 2)), Nanos(0));
}

// 204e15 parameters, times 220 picoseconds, are more than 63 bits hold.
TEST(HostAdamTime, CountsBeyondSixtyThreeBits) {
  const ModelProfile profile = Layers({int64_t{8'000'000'000'000'000}, 400'000'000'000'000'000});
  EXPECT_EQ(HostAdamTime(profile, BytesOfParameter(Precision::kBFloat16, 2)),
            Nanos(44'880'000'000'000'000));
}

}  // namespace
}  // namespace siphon
