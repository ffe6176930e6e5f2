#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "launch/mpi_world.h"

namespace siphon {
namespace {

using Environment = std::map<std::string, std::string>;

// Replaces all variables that a launcher may have set, and puts them back.
class ScopedEnvironment {
 public:
  explicit ScopedEnvironment(const Environment& wanted) {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                             "PMI_RANK", "PMI_SIZE", "SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_PROCID",
                             "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
      names_.push_back(name);
    }
    for (const auto& [name, value] : wanted) setenv(name.c_str(), value.c_str(), 1);
  }
  ~ScopedEnvironment() {
    for (const char* name : names_) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::vector<const char*> names_;
  Environment before_;
};

struct Launch {
  std::string name;
  Environment environment;
  bool under_mpi;
  int rank;
  int size;
};

TEST(StartedUnderMpi, TellsLaunchersFromShells) {
  const std::vector<Launch> launches = {
      {"plain shell", {}, false, -1, -1},
      {"mpirun",
       {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}, {"PMIX_RANK", "2"}},
       true,
       2,
       4},
      {"mpirun with one rank",
       {{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}},
       true,
       0,
       1},
      {"hydra", {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}, true, 1, 3},
      {"batch script",
       {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}},
       false,
       -1,
       -1},
      {"srun --mpi=pmix",
       {{"SLURM_JOB_ID", "7"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_STEP_NUM_TASKS", "4"},
        {"SLURM_PROCID", "3"},
        {"PMIX_RANK", "3"}},
       true,
       3,
       4},
      {"interactive shell of srun --pty",
       {{"SLURM_JOB_ID", "7"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_PROCID", "0"},
        {"PMIX_RANK", "0"}},
       false,
       -1,
       -1},
      {"mpirun in that shell",
       {{"SLURM_STEP_ID", "0"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"PMIX_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_RANK", "1"}},
       true,
       1,
       2},
      {"nonsense", {{"PMI_RANK", "one"}, {"PMI_SIZE", "-3"}}, true, -1, -1}};
  for (const Launch& launch : launches) {
    SCOPED_TRACE(launch.name);
    const ScopedEnvironment scoped(launch.environment);
    EXPECT_EQ(StartedUnderMpi(), launch.under_mpi);
    EXPECT_EQ(AnnouncedRank(), launch.rank);
    EXPECT_EQ(AnnouncedSize(), launch.size);
  }
}

}  // namespace
}  // namespace siphon
