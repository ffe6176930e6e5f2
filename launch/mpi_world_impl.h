#ifndef SIPHON_LAUNCH_MPI_WORLD_IMPL_H_
#define SIPHON_LAUNCH_MPI_WORLD_IMPL_H_

#include <mpi.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/mpi_world.h"
#include "launch/process/stop_signal.h"

// What mpi_world.cc, mpi_pulse.cc and mpi_transport.cc share. Only these include it.

namespace siphon {

// OK, or Internal with what was tried and MPI's own words.
absl::Status MpiStatus(int code, absl::string_view doing);

inline constexpr int kLaneCount = 3;
using LaneComms = std::array<MPI_Comm, kLaneCount>;

// A thread of rank 0 that tells all others, again and again, that it lives, and for how long it has
// taken no processor time but this thread's.
class MpiPulse {
 public:
  MpiPulse(MPI_Comm job, int ranks, Nanos period);
  ~MpiPulse();  // no more of it

 private:
  void Beat(Nanos still);

  MPI_Comm job_;
  int ranks_;
  Nanos period_;
  StopSignal stop_;
  std::thread thread_;
};

struct MpiWorld::Impl {
  int rank = 0;
  int size = 1;
  MPI_Comm job = MPI_COMM_WORLD;  // all ranks, by the numbers they have
  MPI_Comm host = MPI_COMM_NULL;  // the ranks that share memory with this one
  int host_rank = 0;              // this rank's place among them
  int host_size = 1;
  std::vector<int> host_of_rank;
  std::vector<MPI_Win> windows;
  std::vector<LaneComms>
      lanes;  // of each MPI transport; freed by Finalize, when all ranks are there
  std::atomic<bool> finalized{false};
  bool has_threads = false;         // MPI lets any thread use it, one at a time
  bool hears_pulse = false;         // of rank 0, which is not over
  std::unique_ptr<MpiPulse> pulse;  // this one's

  // Who and where this rank is in `job`; collective.
  absl::Status LookAround();
  absl::StatusOr<std::vector<int>> HostsOfRanks() const;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_MPI_WORLD_IMPL_H_
