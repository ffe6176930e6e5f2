#include "pipeline/transport/nccl_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace siphon {
namespace {

constexpr WorkerId kFirst{0}, kSecond{1}, kThird{2};
const std::vector<Channel> kChannels = {{kFirst, kSecond, Lane::kForward},
                                        {kSecond, kFirst, Lane::kBackward},
                                        {kSecond, kThird, Lane::kForward}};

TEST(NcclRecordChannels, GoBothWaysBetweenAllPairs) {
  const std::vector<Channel> expected = {{kFirst, kSecond, Lane::kForward},
                                         {kSecond, kFirst, Lane::kForward},
                                         {kSecond, kThird, Lane::kForward},
                                         {kThird, kSecond, Lane::kForward}};
  EXPECT_EQ(NcclRecordChannels(kChannels), expected);
  EXPECT_THAT(NcclRecordChannels({}), testing::IsEmpty());
}

// A worker in the middle of a pipeline has more ends than one at its border.
TEST(NcclMemoryOf, GrowsWithTheEndsOfAWorkerAndItsThreadBlocks) {
  const Bytes of_one_end = NcclMemoryOf(kThird, kChannels, 4);
  EXPECT_GT(of_one_end, Bytes(0));
  EXPECT_EQ(NcclMemoryOf(kFirst, kChannels, 4), of_one_end * 2);
  EXPECT_EQ(NcclMemoryOf(kSecond, kChannels, 4), of_one_end * 3);
  EXPECT_LT(NcclMemoryOf(kThird, kChannels, 1), of_one_end);
  EXPECT_EQ(NcclMemoryOf(WorkerId(3), kChannels, 4), Bytes(0));
}

}  // namespace
}  // namespace siphon
