#include "launch/run/place_workers.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/config/load_job_config.h"

namespace siphon {
namespace {

using testing::HasSubstr;

std::vector<int> Placed(const std::vector<int>& servers, const std::vector<int>& hosts) {
  const auto workers = PlaceWorkers(servers, hosts);
  EXPECT_TRUE(workers.ok()) << workers.status();
  std::vector<int> numbers;
  for (const WorkerId worker : workers.value_or(std::vector<WorkerId>())) {
    numbers.push_back(worker.value);
  }
  return numbers;
}

std::string Refusal(const std::vector<int>& servers, const std::vector<int>& hosts) {
  return std::string(PlaceWorkers(servers, hosts).status().message());
}

TEST(PlaceWorkers, LeavesRanksThatAreWhereTheirWorkersAre) {
  EXPECT_EQ(Placed({0, 0, 1, 1}, {0, 0, 1, 1}), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(Placed({0, 1, 0, 1}, {0, 1, 0, 1}), (std::vector{0, 1, 2, 3}));
}

TEST(PlaceWorkers, PutsWorkersOfAServerOnOneHost) {
  // Stages 0 and 3 share a server; ranks 0 and 1 a host.
  EXPECT_EQ(Placed({0, 1, 1, 0}, {0, 0, 1, 1}), (std::vector{0, 3, 1, 2}));
  EXPECT_EQ(Placed({1, 1, 0, 0}, {0, 1, 0, 1}), (std::vector{2, 0, 3, 1}));
}

TEST(PlaceWorkers, GivesEachServerAHostWithAsManyRanks) {
  EXPECT_EQ(Placed({0, 1, 1, 1}, {0, 0, 0, 1}), (std::vector{1, 2, 3, 0}));
  EXPECT_EQ(Placed({5, 5, 5}, {0, 0, 0}), (std::vector{0, 1, 2}));  // the others have no worker
}

TEST(PlaceWorkers, SaysWhatDoesNotFit) {
  EXPECT_EQ(Refusal({0, 0, 0, 1}, {0, 0, 1, 1}),
            "the plan has 3 and 1 workers in its servers, and 2 and 2 were started on the hosts; "
            "mpirun --host one:3,other:N starts so many on each");
  EXPECT_THAT(Refusal({0, 0, 1}, {0, 0, 0}), HasSubstr("and 3 were started on one host"));
  EXPECT_THAT(Refusal({0, 0, 0}, {0, 1, 2}),
              HasSubstr("has 3 workers in its server, and 1, 1 and 1"));
}

TEST(CheckOneServer, RefusesSeveral) {
  JobConfig job;
  EXPECT_TRUE(CheckOneServer(job).ok());
  job.topology.servers = 2;
  EXPECT_EQ(CheckOneServer(job).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(CheckOneServer(job).message()),
              HasSubstr("topology.servers: is 2, and all workers would be started on this one"));
}

}  // namespace
}  // namespace siphon
