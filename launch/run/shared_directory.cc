#include "launch/run/shared_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/run/seat/training_state.h"
#include "planner/status.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

// What stands in the way; empty: the file is there.
std::string Write(const fs::path& file) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) return error.message();
  errno = 0;
  std::ofstream written(file);
  written << "for the other hosts to see\n";
  written.close();
  return written.good() ? "" : std::strerror(errno);
}

std::string ThisHost() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

absl::Status CheckCheckpointsAreShared(const JobConfig& job, MpiWorld& world) {
  const bool wanted = job.checkpoint.every_steps > 0 || job.checkpoint.resume != "none";
  if (!wanted || world.one_host()) return absl::OkStatus();
  const std::string directory = CheckpointDirectory(job);
  const auto wrong = [&](const std::string& what) {
    const bool own = !job.checkpoint.directory.empty();
    return ConfigError(job, own ? "checkpoint.directory" : "output.directory",
                       absl::StrCat("'", directory, "' ", what));
  };
  // By a name that no host has asked for before: some file systems remember what was not there.
  const fs::path file = fs::path(directory) / absl::StrCat(".seen-by-all-hosts-", getpid());
  const std::string mine = world.rank() == 0 ? absl::StrCat(file.string(), "\n", Write(file)) : "";
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> written, world.AllGatherText(mine));
  const size_t end = written[0].rfind('\n');
  if (end + 1 < written[0].size()) {
    return wrong(absl::StrCat("cannot be written: ", written[0].substr(end + 1)));
  }
  std::error_code error;
  const bool there = fs::exists(written[0].substr(0, end), error);
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> blind,
                          world.AllGatherText(there ? "" : ThisHost()));
  if (world.rank() == 0) fs::remove(file, error);
  for (size_t rank = 0; rank < blind.size(); ++rank) {
    if (blind[rank].empty()) continue;
    return wrong(absl::StrCat("is another one on host ", blind[rank], " (worker ", rank,
                              ") than worker 0's; checkpoints are written by all hosts, into a "
                              "directory that they share"));
  }
  return absl::OkStatus();
}

}  // namespace siphon
