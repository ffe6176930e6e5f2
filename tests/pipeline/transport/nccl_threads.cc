#include "tests/pipeline/transport/nccl_threads.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "tests/support/fake_cuda/fake_control.h"

namespace siphon {
namespace {

constexpr Bytes kMemory{16 << 20};

}  // namespace

bool NcclThreads::ok() const {
  return std::all_of(made.begin(), made.end(), [](const auto& each) { return each.ok(); });
}

NcclThreads MakeNcclThreads(ThreadJob host, const LivenessCheck& check,
                            const std::function<void(NcclTransportOptions&)>& change) {
  NcclThreads job{.host = std::move(host)};
  const int workers = static_cast<int>(job.host.transports.size());
  FakeCuda::Set("devices", workers);
  std::vector<NcclTransportOptions> options;
  for (int worker = 0; worker < workers; ++worker) {
    options.push_back({.me = WorkerId(worker),
                       .workers = workers,
                       .device = worker,
                       .channels = DataChannels(workers)});
    if (change) change(options.back());
    job.memory.push_back(std::make_unique<DeviceMemory>(options.back().device, kMemory));
    job.made.emplace_back(absl::UnknownError("not made"));
  }
  std::vector<std::thread> threads;
  for (size_t worker = 0; worker < options.size(); ++worker) {
    threads.emplace_back([&, worker] {
      job.made[worker] = TheNcclModule().MakeTransport(
          options[worker], std::move(job.host.transports[worker]), check);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return job;
}

}  // namespace siphon
