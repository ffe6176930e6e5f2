#include "tests/launch/run/device_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/job_memory.h"
#include "launch/run/job/prepare_job.h"
#include "planner/status.h"

namespace siphon {

JobConfig PlainJob(JobConfig job, const std::string& backend, const std::string& folder) {
  job.model.dropout = 0;
  job.model.flash_attention = false;
  job.train.steps = 4;
  job.checkpoint.every_steps = 2;
  job.pipeline.backend = backend;
  if (backend == "cuda") job.topology.name = "v100x4_nv2";  // what devices are planned for
  job.memory.strategy = "keep";
  job.output.directory = absl::StrCat(folder, "/", backend);
  job.memory.nvme_directory = folder;
  return job;
}

std::vector<Bytes> Needs(const JobConfig& job, int64_t percent) {
  const auto prepared = PrepareJob(job, {});
  SIPHON_CHECK(prepared.ok(), prepared.status().message());
  const auto estimate =
      EstimateJob({prepared->job, prepared->model.spec, prepared->plan}, Accounting::kRuntime);
  SIPHON_CHECK(estimate.ok(), estimate.status().message());
  std::vector<Bytes> needs;
  for (const MemoryByKind& worker : estimate->workers) {
    const Bytes beside = worker[MemoryKind::kCommunication];
    needs.push_back(beside + Bytes((Total(worker) - beside).value * percent / 100));
  }
  return needs;
}

JobConfig Tight(JobConfig job, const std::string& strategy, int64_t percent) {
  const std::vector<Bytes> needs = Needs(job, percent);
  job.memory.capacity = {*std::max_element(needs.begin(), needs.end())};
  job.memory.strategy = strategy;
  return job;
}

}  // namespace siphon
