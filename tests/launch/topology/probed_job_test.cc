#include "launch/topology/probe/probed_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "launch/topology/job_topology.h"
#include "tests/launch/topology/made_up_server.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ProbedJob : public testing::Test {
 protected:
  ProbedJob() : server_(2, "V100") {
    std::string pattern = (fs::temp_directory_path() / "siphon-probed-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    server_.Link(0, 1, 24);
    server_.Link(1, 0, 24);
    server_.Host(12, 11);
    sources_.module = &server_;
    sources_.sysfs = directory_ + "/sys";
    sources_.cache = directory_ + "/cache";
    sources_.nvml = [] { return NvmlServer{.driver = "580.65"}; };
    job_.topology.source = "probe";
  }
  ~ProbedJob() override { fs::remove_all(directory_); }

  absl::StatusOr<JobConfig> Resolve(UnknownServer unknown) {
    return WithProbedTopology(job_, unknown, [this] { return sources_; });
  }

  MadeUpServer server_;
  std::string directory_;
  ProbeSources sources_;
  JobConfig job_;
};

TEST_F(ProbedJob, HasTheFileThatIsKeptOfThisMachine) {
  const auto job = Resolve(UnknownServer::kMeasure);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->topology.source, "file");
  EXPECT_EQ(fs::path(job->topology.name).parent_path(), sources_.cache);
  const auto topology = LoadJobTopology(*job);
  ASSERT_TRUE(topology.ok()) << topology.status();
  ASSERT_EQ((*topology)->switches.size(), 2u);
  EXPECT_EQ((*topology)->switches[0].to_host, BytesPerSecond(12'000'000'000));

  EXPECT_EQ(server_.trials(), 0) << "copies were timed in a process that has ended";
  const auto again = Resolve(UnknownServer::kRefuse);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *job);
}

TEST_F(ProbedJob, IsRefusedInALineWhereNothingIsKept) {
  EXPECT_EQ(Resolve(UnknownServer::kRefuse).status(),
            absl::InvalidArgumentError("default: topology.source: nothing is kept of these devices "
                                       "with this driver; siphon topology --probe measures"));
  sources_.nvml = []() -> absl::StatusOr<NvmlServer> { return absl::InternalError("no NVML"); };
  EXPECT_THAT(std::string(Resolve(UnknownServer::kMeasure).status().message()),
              HasSubstr("topology.source: what was measured could not be kept: it needs NVML"));
  EXPECT_THAT(std::string(LoadJobTopology(job_).status().message()),
              HasSubstr("topology.source: is probe, which siphon train and siphon plan measure"));
}

TEST_F(ProbedJob, StaysAsItIsWithAnotherSource) {
  job_.topology = {.source = "preset", .name = "dgx1_v100"};
  EXPECT_EQ(*WithProbedTopology(job_, UnknownServer::kMeasure,
                                [] { return absl::InternalError("nobody asks"); }),
            job_);
}

}  // namespace
}  // namespace siphon
