#ifndef SIPHON_LAUNCH_MPI_WORLD_H_
#define SIPHON_LAUNCH_MPI_WORLD_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipeline/transport/transport.h"
#include "planner/units.h"

namespace siphon {

// Whether this process is one of several that mpirun, srun or the like has started (environment
// only; MPI is not touched).
bool StartedUnderMpi();
// Rank and size that the launcher announced in the environment, before MPI_Init; -1 when unknown.
int AnnouncedRank();
int AnnouncedSize();

// Largest MPI message; longer spans go in pieces. MPI counts in int.
inline constexpr Bytes kMpiPieceBytes(int64_t{1} << 30);

// Free bytes that SharedWindow(bytes) wants in the directory of its file, Open MPI's own share
// included.
Bytes SharedWindowFileBytes(Bytes bytes, int ranks);

// MPI for this process: initialised by Init, finalised by Finalize (all ranks together) or left
// alone when the job fails. Thread-safety: the thread that called Init, but Abort.
class MpiWorld {
 public:
  static absl::StatusOr<std::unique_ptr<MpiWorld>> Init(int* argc, char*** argv);
  int rank() const;
  int size() const;
  // [rank]: the host that it is on, by whether they can share memory; numbered in the order of
  // their lowest ranks.
  const std::vector<int>& host_of_rank() const;
  bool one_host() const;       // all ranks share memory
  bool first_on_host() const;  // this is the lowest rank of its host

  // Gives this rank another number, each rank one of 0 to size() - 1; collective. Before windows
  // and transports are made.
  absl::Status Renumber(int rank);

  // How long a rank for which others wait may be silent, and how long it may take no processor time
  // (0: for ever).
  struct Patience {
    Nanos silent;
    Nanos still;
  };
  // From here until WaitForAll rank 0 lets the others know, from a thread of its own, that it lives
  // and computes. Meanwhile it may not use MPI. Collective.
  void BeginPulse(const Patience& patience);

  // Returns when all ranks have come here, and takes next to no processor time until then.
  // Collective. Requires: BeginPulse. Errors: Unavailable where the others come and rank 0, or rank
  // 0 comes and others do not, and are silent or still for too long; whoever says so first is to
  // end, which ends the job.
  absl::Status WaitForAll(const Patience& patience);

  // Every rank's text on every rank; collective.
  absl::StatusOr<std::vector<std::string>> AllGatherText(const std::string& mine);

  // Memory that all ranks on this host have mapped, each host its own, zero-filled, `bytes` large,
  // beginning at a page; lives until Finalize. Collective. Free space is checked on all ranks
  // before anything is allocated (a failing allocation would hang the others). Errors, on all ranks
  // alike: ResourceExhausted with the bytes needed, the bytes free, the directory, and what to set;
  // InvalidArgument when ranks of a host ask for different sizes.
  absl::StatusOr<absl::Span<std::byte>> SharedWindow(Bytes bytes);

  // Messages by MPI point-to-point, for workers on different hosts: all pairs and lanes exist.
  // Collective. Lives no longer than this.
  absl::StatusOr<std::unique_ptr<Transport>> MakeMpiTransport(LivenessCheck check,
                                                              Bytes piece = kMpiPieceBytes);

  // Collective; the windows and transports are gone afterwards. Not to be called when a rank was
  // lost: it would not return.
  void Finalize();
  // Ends the job from any thread; never returns.
  [[noreturn]] void Abort(int code);

 private:
  MpiWorld() = default;
  absl::Status CheckWindow(Bytes bytes, const std::string& directory) const;
  absl::Status Agree(const absl::Status& mine);
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_MPI_WORLD_H_
