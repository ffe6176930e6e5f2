#include "tests/launch/run/seated_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "launch/run/parking/parking_room.h"
#include "launch/run/parking/shared_by_threads.h"
#include "launch/run/run_worker.h"
#include "pipeline/transport/in_process_transport.h"

namespace siphon {

SeatedRun RunSeats(const PreparedJob& prepared, const SeatChange& change) {
  const int workers = WorkerCount(prepared.plan.training);
  std::atomic<bool> failed = false;
  const auto lent = HostMapping::Make(ParkingRegionBytes(prepared));
  SharedByThreads more(workers);
  auto transports = MakeInProcessTransports(workers, [&failed] {
    return failed ? absl::UnavailableError("another worker failed") : absl::OkStatus();
  });
  SeatedRun run;
  run.ends.resize(static_cast<size_t>(workers));
  std::vector<std::thread> threads;
  testing::internal::CaptureStderr();
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      WorkerSeat seat{
          .me = WorkerId(worker), .transport = transports[worker].get(), .lent = lent->bytes()};
      seat.more_shared = [&, worker](Bytes bytes) { return more.More(WorkerId(worker), bytes); };
      if (change) change(seat);
      seat.at_failure = [&, worker, at_failure = seat.at_failure](const absl::Status& failure) {
        if (at_failure) at_failure(failure);
        failed = true;
        transports[worker].reset();
      };
      run.ends[worker] = RunWorker(prepared, seat);
    });
  }
  for (std::thread& thread : threads) thread.join();
  run.said = testing::internal::GetCapturedStderr();
  return run;
}

}  // namespace siphon
