#include "planner/published/mpress_table4.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

TEST(MpressTable4, PrintsPlansBelowThePapers) {
  MpressRun run{.model = "GPT-10.3B", .strategy = "mpress"};
  run.recomputed = {Bytes(150'400'000'000), {StageId(0), StageId(1), StageId(2), StageId(5)}};
  run.peers = {Bytes(9'600'000'000), {StageId(3)}};
  run.overflow = Bytes(58'400'000'000);
  MpressRun failed = run;
  failed.strategy = "keep";
  failed.status = absl::ResourceExhaustedError("too full");
  EXPECT_EQ(MpressTable4Text({run, failed}),
            "MPress, Table IV: device memory saved by each way in GB (1e9 bytes), and on which "
            "stages; all ways together, and what must be\n"
            "saved: the demand of all stages beyond what all devices have (published: Table II "
            "less 8 x 32 GB)\n"
            "model       plan       recompute      host swap      D2D swap       all  must\n"
            "Bert-1.67B  published  121 (0-6)      0              37 (0-3)       158    90\n"
            "Bert-6.2B   published  972 (0-7)      59 (0-5)       42 (0-4)      1073  1023\n"
            "GPT-10.3B   published  156 (0-7)      6 (0-7)        27 (0-3)       189    69\n"
            "            mpress     150 (0-2,5)    0              10 (3)         160    58\n"
            "GPT-20.4B   published  294 (0-7)      242 (0-7)      38 (0-3)       574   391\n"
            "MPress saves more than it must, most so of GPT: 189 GB where 69 are too much, and 574 "
            "where 391 are. Ours has other shares for that reason.\n");
}

// Section IV.D: shares of each row in percent.
TEST(MpressTable4, HasTheSharesOfThePaper) {
  const MpressSavings& last = MpressTable4().back();
  const double all = last.recomputed.gigabytes + last.host.gigabytes + last.peers.gigabytes;
  EXPECT_NEAR(100 * last.recomputed.gigabytes / all, 51.2, 0.1);
  EXPECT_NEAR(100 * last.host.gigabytes / all, 42.2, 0.1);
  EXPECT_NEAR(100 * last.peers.gigabytes / all, 6.6, 0.1);
}

}  // namespace
}  // namespace siphon
