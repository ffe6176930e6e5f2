#ifndef SIPHON_LAUNCH_PROCESS_JOB_DIRECTORY_H_
#define SIPHON_LAUNCH_PROCESS_JOB_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/units.h"

namespace siphon {

// One directory a job for everything temporary, ours and Open MPI's: "<root>/siphon-<uid>-XXXXXX".
// The owner holds a lock (flock) on the directory itself, which ends with the owner however it
// ends, so that a directory that a killed job left is recognised whatever its pid is now.
class JobDirectory {
 public:
  // Takes the first of `roots` (default: /dev/shm, $TMPDIR, /tmp, /var/tmp) with at least `needed`
  // bytes free, after removing what killed jobs of this user left in any of them. Errors:
  // ResourceExhausted with the bytes needed, each root's free bytes and the option to set (TMPDIR).
  static absl::StatusOr<JobDirectory> Make(Bytes needed, std::vector<std::string> roots = {});
  JobDirectory(JobDirectory&& other) noexcept;
  JobDirectory& operator=(JobDirectory&& other) = delete;
  ~JobDirectory();  // removes it, whole

  const std::string& path() const { return path_; }
  const std::string& root() const { return root_; }
  // Why earlier roots were passed over, for a reader: "/dev/shm has 64.0 MiB free". Empty if it is
  // the first.
  const std::string& passed_over() const { return passed_over_; }

 private:
  JobDirectory() = default;
  std::string path_;
  std::string root_;
  std::string passed_over_;
  int lock_ = -1;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_JOB_DIRECTORY_H_
