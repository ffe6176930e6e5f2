#include "launch/process/open_files.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace siphon {

int64_t FilesOfMpirun(int workers) {
  constexpr int64_t kAlone = 24 + 8;
  constexpr int64_t kEach = 3 + 1;
  return kAlone + kEach * workers;
}

absl::Status AllowOpenFiles(int64_t files) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::OkStatus();  // then nothing is known
  const auto wanted = static_cast<rlim_t>(files);
  if (limit.rlim_cur >= wanted) return absl::OkStatus();
  const rlim_t most = limit.rlim_max;
  if (most >= wanted) {
    limit.rlim_cur = wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("raising the limit of open files to ", files, ": ", std::strerror(errno)));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "mpirun needs up to ", files, " open files for this job, and the limit is ", most,
      "; raise it (ulimit -Hn ", files, " as root; docker run --ulimit nofile=", files, ")"));
}

}  // namespace siphon
