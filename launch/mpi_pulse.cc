#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/mpi_world.h"
#include "launch/mpi_world_impl.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kPulseTag = 1;
constexpr int64_t kLastPulse = -1;
constexpr Nanos kBetweenLooks(2'000'000);
constexpr Nanos kLongestPeriod(500'000'000);
// Of a period a process that stands still takes less: threads that look for something, pictures of
// progress.
constexpr int64_t kLeastPartWorking = 100;

Nanos PeriodFor(const MpiWorld::Patience& patience) {
  Nanos shortest = patience.silent;
  if (patience.still > Nanos(0)) shortest = std::min(shortest, patience.still);
  return std::clamp(Nanos(shortest.value / 4), kBetweenLooks, kLongestPeriod);
}

Nanos Clock(clockid_t id) {
  struct timespec time {};
  clock_gettime(id, &time);
  return Nanos(int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec);
}

Nanos WorkOfOthers() { return Clock(CLOCK_PROCESS_CPUTIME_ID) - Clock(CLOCK_THREAD_CPUTIME_ID); }

// Of rank 0, what one that waits for it hears. Time is counted in looks, so that a machine that
// slept loses nobody.
class PulseWatch {
 public:
  PulseWatch(MPI_Comm job, int rank, const MpiWorld::Patience& patience)
      : job_(job), patience_(patience) {
    // One report is enough: that of rank 1, whose end ends the others.
    if (rank > 1) patience_ = {patience.silent * 2, patience.still * 2};
  }

  absl::Status Look() {
    silent_ += kBetweenLooks;
    for (int here = 1; here != 0;) {
      SIPHON_RETURN_IF_ERROR(MpiStatus(MPI_Iprobe(0, kPulseTag, job_, &here, MPI_STATUS_IGNORE),
                                       "looking for a pulse"));
      if (here != 0) SIPHON_RETURN_IF_ERROR(Receive());
    }
    if (silent_ >= patience_.silent) {
      return Lost(absl::StrCat("silent for ", FormatNanos(silent_), " (launch.heartbeat_timeout)"));
    }
    if (patience_.still > Nanos(0) && still_ >= patience_.still) {
      return Lost(absl::StrCat("nothing was computed there for ", FormatNanos(still_),
                               " (launch.stall_timeout)"));
    }
    return absl::OkStatus();
  }

  // Requires: rank 0 has sent its last pulse, or will.
  absl::Status End() {
    while (!is_over_) SIPHON_RETURN_IF_ERROR(Receive());
    return absl::OkStatus();
  }

 private:
  static absl::Status Lost(const std::string& how) {
    return absl::UnavailableError(absl::StrCat("rank 0 was lost as it prepared the job: ", how));
  }

  absl::Status Receive() {
    int64_t still = 0;
    SIPHON_RETURN_IF_ERROR(
        MpiStatus(MPI_Recv(&still, 1, MPI_INT64_T, 0, kPulseTag, job_, MPI_STATUS_IGNORE),
                  "receiving a pulse"));
    is_over_ = still == kLastPulse;
    silent_ = Nanos(0);
    still_ = is_over_ ? Nanos(0) : Nanos(still);
    return absl::OkStatus();
  }

  MPI_Comm job_;
  MpiWorld::Patience patience_;
  Nanos silent_;
  Nanos still_;
  bool is_over_ = false;
};

}  // namespace

MpiPulse::MpiPulse(MPI_Comm job, int ranks, Nanos period)
    : job_(job), ranks_(ranks), period_(period) {
  thread_ = std::thread([this] {
    Nanos work = WorkOfOthers();
    Nanos still;
    do {
      const Nanos before = std::exchange(work, WorkOfOthers());
      const bool works = (work - before) * kLeastPartWorking >= period_;
      still = works ? Nanos(0) : still + period_;
      Beat(still);
    } while (!stop_.StoppedWithin(period_));
  });
}

MpiPulse::~MpiPulse() {
  stop_.Stop();
  thread_.join();
  Beat(Nanos(kLastPulse));
}

// To one that does not listen any more, it means nothing.
void MpiPulse::Beat(Nanos still) {
  for (int rank = 1; rank < ranks_; ++rank) {
    MPI_Send(&still.value, 1, MPI_INT64_T, rank, kPulseTag, job_);
  }
}

void MpiWorld::BeginPulse(const Patience& patience) {
  if (!impl_->has_threads) return;
  impl_->hears_pulse = impl_->rank > 0;
  if (impl_->rank > 0 || impl_->size == 1) return;
  impl_->pulse = std::make_unique<MpiPulse>(impl_->job, impl_->size, PeriodFor(patience));
}

absl::Status MpiWorld::WaitForAll(const Patience& patience) {
  impl_->pulse.reset();
  PulseWatch watch(impl_->job, impl_->rank, patience);
  Nanos waited;
  MPI_Request all = MPI_REQUEST_NULL;
  SIPHON_RETURN_IF_ERROR(MpiStatus(MPI_Ibarrier(impl_->job, &all), "MPI_Ibarrier"));
  for (int here = 0;;) {
    SIPHON_RETURN_IF_ERROR(
        MpiStatus(MPI_Test(&all, &here, MPI_STATUS_IGNORE), "waiting for all ranks"));
    if (here != 0) break;
    std::this_thread::sleep_for(std::chrono::nanoseconds(kBetweenLooks.value));
    if (impl_->hears_pulse) {
      SIPHON_RETURN_IF_ERROR(watch.Look());
    } else if ((waited += kBetweenLooks) >= patience.silent && impl_->has_threads) {
      return absl::UnavailableError(
          absl::StrCat("a rank was lost as the job was prepared: not all have come for ",
                       FormatNanos(waited), " (launch.heartbeat_timeout)"));
    }
  }
  if (!impl_->hears_pulse) return absl::OkStatus();
  impl_->hears_pulse = false;
  return watch.End();
}

}  // namespace siphon
