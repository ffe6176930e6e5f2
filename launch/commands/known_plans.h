#ifndef SIPHON_LAUNCH_COMMANDS_KNOWN_PLANS_H_
#define SIPHON_LAUNCH_COMMANDS_KNOWN_PLANS_H_

#include <string>
#include <utility>

#include "launch/config/job_config.h"

namespace siphon {

// Plans that were found for jobs, for those who start such a job again: a search can take a minute,
// and learning rates, steps or where a run writes to change nothing in it.
//
// Each is a file of its own, under what it depends on: the job but for such keys, the files that it
// names (by their sizes and times), this machine's cores and memory, and this program. Whoever
// takes one still has to look whether it can be followed.
class KnownPlans {
 public:
  // `directory` need not be there; empty: nothing is known, and nothing is kept.
  explicit KnownPlans(std::string directory) : directory_(std::move(directory)) {}

  // As it was kept; empty: none is known for this job.
  std::string Find(const JobConfig& job) const;

  // For later runs. Of more than `most` plans those that were kept first go. What cannot be written
  // is not kept.
  void Keep(const JobConfig& job, const std::string& plan, int most = 64) const;

 private:
  std::string FileOf(const std::string& key) const;

  std::string directory_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_KNOWN_PLANS_H_
