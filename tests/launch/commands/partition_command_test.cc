#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/process/exit_codes.h"
#include "tests/launch/commands/run_command.h"

namespace siphon {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// 10, 20, 30 and 40 ms; the last has 100 MB of parameters, and 2 MB go from each to the next.
constexpr char kChain[] =
    "in -- Input -- forward_compute_time=5, backward_compute_time=0, activation_size=9, "
    "parameter_size=0\n"
    "a -- Conv -- forward_compute_time=4, backward_compute_time=6, activation_size=2000000, "
    "parameter_size=0\n"
    "b -- Conv -- forward_compute_time=8, backward_compute_time=12, activation_size=2000000, "
    "parameter_size=0\n"
    "c -- Conv -- forward_compute_time=10, backward_compute_time=20, activation_size=2000000, "
    "parameter_size=0\n"
    "d -- Linear -- forward_compute_time=15, backward_compute_time=25, activation_size=0, "
    "parameter_size=100000000\n"
    "\tin -- a\n\ta -- b\n\tb -- c\n\tc -- d\n";

class PartitionCommand : public CommandTest {
 protected:
  void SetUp() override { profile_ = Write(kChain); }

  std::string Write(absl::string_view text) const { return WriteFile("profile", text); }

  static CommandEnd Run(std::vector<std::string> flags) {
    return RunRegisteredCommand("partition", std::move(flags));
  }

  std::string profile_;
};

TEST_F(PartitionCommand, PrintsATableOfStages) {
  const CommandEnd end = Run({profile_, "--workers", "3", "--activation_compression_ratio", "1"});
  EXPECT_EQ(end.code, kExitDone) << end.err;
  EXPECT_EQ(end.err, "");
  // One worker: 100 ms. Data parallelism: (100 + 4 * 2 / 3 * 100) / 3 = 122.22 ms.
  EXPECT_THAT(end.out,
              StartsWith(absl::StrCat(
                  profile_,
                  ": 5 nodes for 3 workers at 1.00 GB/s, method exact\n"
                  "40.00 ms a minibatch: 2.50x one worker (100.00 ms), 3.06x data parallelism "
                  "(122.22 ms)\n"
                  "\n"
                  "stage  workers      time  of slowest   compute  parameters  sends on    memory  "
                  "nodes\n"
                  "0            2  30.00 ms  ########..  60.00 ms         0 B  1.91 MiB  11.4 MiB  "
                  "in .. c (4)\n"
                  "1            1  40.00 ms  ##########  40.00 ms    95.4 MiB         -   286 MiB  "
                  "d\n"
                  "\n"
                  "Stage 1 is the slowest, by its compute.\n"
                  "Memory: on each worker of the stage; parameters once a minibatch in flight, "
                  "gradients and optimizer state, stashed activations.\n"
                  "3 cuts compared in ")));
  EXPECT_THAT(end.out, EndsWith(" ms.\n"));
}

TEST_F(PartitionCommand, PrintsTheSameAsJson) {
  const CommandEnd end = Run({"--profile", profile_, "--workers", "2", "--method", "pipedream",
                              "--bandwidth", "25GB/s", "--straight", "--format", "json"});
  EXPECT_EQ(end.code, kExitDone) << end.err;
  auto json = nlohmann::json::parse(end.out);
  EXPECT_GE(json["planning_seconds"].get<double>(), 0);
  json.erase("planning_seconds");
  // (100 + 4 * 1 / 2 * 4 ms of parameters) / 2
  EXPECT_DOUBLE_EQ(json["data_parallel_seconds"].get<double>(), 0.054);
  json.erase("data_parallel_seconds");
  EXPECT_EQ(json, nlohmann::json::parse(absl::StrCat(
                      R"({
    "profile": ")",
                      profile_, R"(", "method": "pipedream", "workers": 2, "workers_used": 2,
    "bandwidth_bytes_per_second": 25000000000, "activation_compression_ratio": null,
    "seconds_per_minibatch": 0.06, "one_worker_seconds": 0.1,
    "stages": [
      {"nodes": ["in", "a", "b", "c"], "replicas": 1, "compute_seconds": 0.06,
       "parameter_bytes": 0, "boundary_bytes": 2000000, "memory_bytes": 12000000,
       "seconds_per_minibatch": 0.06, "limit": "compute"},
      {"nodes": ["d"], "replicas": 1, "compute_seconds": 0.04, "parameter_bytes": 100000000,
       "boundary_bytes": 0, "memory_bytes": 300000000, "seconds_per_minibatch": 0.04,
       "limit": "compute"}],
    "cuts_compared": 3, "cuts_left_out": ""})")));
}

TEST_F(PartitionCommand, SaysWhatItCountsAndWhoIsIdle) {
  const CommandEnd free =
      Run({profile_, "--workers", "2", "--straight", "--weight_versions", "one"});
  EXPECT_THAT(free.out, HasSubstr("Transfers between stages count nothing here; "
                                  "--activation_compression_ratio 1 charges them in full.\n"));
  EXPECT_THAT(free.out, HasSubstr(", no replicas\n"));
  EXPECT_THAT(free.out, HasSubstr("stage; parameters, gradients and"));
  const CommandEnd idle = Run({profile_, "--workers", "8", "--straight"});
  EXPECT_THAT(idle.out, HasSubstr("4 workers would not help and stay idle."));
  const CommandEnd slow = Run({profile_, "--workers", "2", "--straight", "--bandwidth", "50MB/s",
                               "--activation_compression_ratio", "1"});
  EXPECT_THAT(slow.out, HasSubstr("Stage 1 is the slowest, by its transfers."));
}

TEST_F(PartitionCommand, RefusesWithTheReason) {
  const auto expect = [&](std::vector<std::string> arguments, const std::string& message) {
    const CommandEnd end = Run(std::move(arguments));
    EXPECT_EQ(end.code, kExitBadInput);
    EXPECT_EQ(end.out, "");
    EXPECT_EQ(end.err, absl::StrCat("siphon: ", message, "\n"));
  };
  expect({},
         "partition needs a profile: siphon partition --profile FILE --workers N; siphon "
         "profile measures one");
  expect({profile_}, "partition needs --workers N, from 1 to 1024");
  expect({profile_, "--workers", "2000"}, "--workers: is 2000; there must be 1 to 1024");
  expect({profile_, "--workers", "2", "--method", "pipedraem"},
         "--method: unknown method 'pipedraem'; did you mean 'pipedream'?");
  expect({profile_, "--workers", "2", "--bandwidth", "fast"},
         "--bandwidth: 'fast' is not a number with a unit, such as '25GB/s'");
  expect({profile_, "--workers", "2", "--bandwidth", "0GB/s"},
         "a bandwidth of 0 B/s; must be more than 0");
  expect({profile_, "--workers", "2", "--activation_compression_ratio", "0"},
         "an activation compression ratio of 0; must be more than 0 (1: not compressed)");
  expect({directory_ + "/none", "--workers", "2"},
         absl::StrCat("cannot read profile '", directory_, "/none': No such file or directory"));
  expect({Write("a -- b -- c"), "--workers", "2"},
         absl::StrCat(profile_,
                      ":1:1: 'a -- b -- c' is neither a node nor an edge; an edge is: "
                      "producer -- consumer"));
}

}  // namespace
}  // namespace siphon
