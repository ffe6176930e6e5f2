#include <array>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "launch/mpi_world.h"

namespace siphon {
namespace {

constexpr int kUnknown = -1;

int NumberIn(const char* variable) {
  const char* text = std::getenv(variable);
  int number = kUnknown;
  if (text == nullptr || !absl::SimpleAtoi(text, &number) || number < 0) return kUnknown;
  return number;
}

template <size_t kCount>
int FirstKnown(const std::array<const char*, kCount>& variables) {
  for (const char* variable : variables) {
    if (const int number = NumberIn(variable); number != kUnknown) return number;
  }
  return kUnknown;
}

bool IsSet(const char* variable) { return std::getenv(variable) != nullptr; }

}  // namespace

// Slurm sets SLURM_PROCID and SLURM_NTASKS in a batch script too, and PMIX_RANK in an interactive
// shell that srun has started. Neither is an MPI job: only a step of several tasks is. In a step of
// one task it makes no difference.
bool StartedUnderMpi() {
  if (IsSet("OMPI_COMM_WORLD_SIZE")) return true;
  if (IsSet("SLURM_STEP_ID")) return NumberIn("SLURM_STEP_NUM_TASKS") > 1;
  return IsSet("PMIX_RANK") || IsSet("PMI_RANK");
}

int AnnouncedRank() {
  if (!StartedUnderMpi()) return kUnknown;
  return FirstKnown(std::array{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"});
}

int AnnouncedSize() {
  if (!StartedUnderMpi()) return kUnknown;
  return FirstKnown(std::array{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"});
}

}  // namespace siphon
