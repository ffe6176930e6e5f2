#ifndef SIPHON_TESTS_PIPELINE_TRANSPORT_THREAD_WORLDS_H_
#define SIPHON_TESTS_PIPELINE_TRANSPORT_THREAD_WORLDS_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "pipeline/transport/in_process_transport.h"
#include "pipeline/transport/ring_transport.h"
#include "pipeline/transport/transport.h"

// Workers as threads of the test program, so that a sanitizer sees the whole protocol.

namespace siphon {

// Transports of one job, and the memory that they share.
struct ThreadJob {
  std::vector<std::byte> region;
  std::vector<std::unique_ptr<Transport>> transports;
};

inline ThreadJob MakeInProcessJob(int workers, const LivenessCheck& check) {
  return {.region = {}, .transports = MakeInProcessTransports(workers, check)};
}

inline std::vector<RingSpec> AllPairs(int workers, Bytes capacity) {
  std::vector<RingSpec> rings;
  for (int from = 0; from < workers; ++from) {
    for (int to = 0; to < workers; ++to) {
      for (const Lane lane : {Lane::kForward, Lane::kBackward, Lane::kControl}) {
        if (from != to) rings.push_back({{WorkerId(from), WorkerId(to), lane}, capacity});
      }
    }
  }
  return rings;
}

// Requires: the layout's rings connect `workers` workers. The region starts 8 bytes behind a
// 64-byte boundary, as MPI's windows do. An empty list of transports means that one could not be
// made.
inline ThreadJob MakeRingJob(int workers, const RingLayout& layout, const LivenessCheck& check) {
  ThreadJob job;
  job.region.resize(static_cast<size_t>(layout.region_bytes.value) + 72);
  const size_t past = reinterpret_cast<uintptr_t>(job.region.data()) % 64;
  const absl::Span<std::byte> region =
      absl::MakeSpan(job.region)
          .subspan((64 - past) % 64 + 8, static_cast<size_t>(layout.region_bytes.value));
  for (int worker = 0; worker < workers; ++worker) {
    auto transport = MakeRingTransport(WorkerId(worker), region, layout, check);
    if (!transport.ok()) return {};
    job.transports.push_back(*std::move(transport));
  }
  return job;
}

// Runs `body` for each worker in a thread of its own and joins them.
inline void RunInThreads(ThreadJob& job, const std::function<void(WorkerId, Transport&)>& body) {
  std::vector<std::thread> threads;
  for (size_t worker = 0; worker < job.transports.size(); ++worker) {
    threads.emplace_back(
        [&, worker] { body(WorkerId(static_cast<int>(worker)), *job.transports[worker]); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_TRANSPORT_THREAD_WORLDS_H_
