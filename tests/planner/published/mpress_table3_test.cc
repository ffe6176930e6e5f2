#include "planner/published/mpress_table3.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

TEST(MpressTable3, ChoosesForEachTensorAsThePaper) {
  ASSERT_EQ(MpressTable3().size(), 6u);
  for (const MpressTensor& row : MpressTable3()) {
    EXPECT_EQ(MpressChoice(row.times), row.choice) << row.model << " " << row.name;
  }
}

TEST(MpressTable3, PrintsOverheadsAndChoices) {
  EXPECT_EQ(
      MpressTable3Text(),
      "MPress, Table III: what each way of saving a tensor adds to the step (ms), and the choice\n"
      "tensor         MB  live  recompute  host swap  D2D swap  ours       published\n"
      "Bert t1       216    78          4          0         0  host_swap  host_swap\n"
      "Bert t2       115    16          3          6         0  d2d_swap   d2d_swap\n"
      "Bert t3       216     2          4         40         4  recompute  recompute\n"
      "GPT  t4       384   214          8          0         0  host_swap  host_swap\n"
      "GPT  t5       384    50          8         24         0  d2d_swap   d2d_swap\n"
      "GPT  t6      1152    12         14        210        15  recompute  recompute\n");
}

// What the paper says of its swaps (about 10.4 GB/s each way to the host, 72 to 85 GB/s over four
// links) must follow from the sizes and times that it prints.
TEST(MpressTable3, HasTheRatesOfItsText) {
  for (const MpressTensor& row : MpressTable3()) {
    const double both_ways = 2 * row.megabytes / 1e3;  // GB
    const double host = both_ways / (static_cast<double>(row.times.host_swap->value) * 1e-9);
    const double peers = both_ways / (static_cast<double>(row.times.peer_swap->value) * 1e-9);
    EXPECT_NEAR(host, 10.4, 0.15) << row.name;
    EXPECT_GE(peers, 71.9) << row.name;
    EXPECT_LE(peers, 85.5) << row.name;
  }
}

}  // namespace
}  // namespace siphon
