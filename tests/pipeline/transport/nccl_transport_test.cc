// What every transport must do, by the transport over NCCL.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/pipeline/transport/nccl_threads.h"
#include "tests/pipeline/transport/transport_conformance.h"
#include "tests/support/fake_nccl/fake_nccl_control.h"

namespace siphon {
namespace {

// Each worker in a thread; `host` has the transports that they have besides.
void RunOverNccl(ThreadJob host, const LivenessCheck& check, const WorkerBody& body) {
  std::atomic<bool> connected = false;
  {
    NcclThreads job = MakeNcclThreads(
        std::move(host), [&] { return connected && check ? check() : absl::OkStatus(); }, nullptr);
    ASSERT_TRUE(job.ok()) << job.made[0].status();
    connected = true;
    ThreadJob staged;
    for (size_t worker = 0; worker < job.made.size(); ++worker) {
      staged.transports.push_back(
          StageOnDevice(std::move(job.made[worker]->transport), job.memory[worker].get()));
    }
    RunInThreads(staged, body);
    // As processes do: nobody waits for another one to leave first.
    std::vector<std::thread> leaving;
    for (auto& transport : staged.transports) leaving.emplace_back([&] { transport.reset(); });
    for (std::thread& thread : leaving) thread.join();
  }
  EXPECT_EQ(FakeNccl::Get("communicators"), 0);
  EXPECT_EQ(FakeNccl::Get("waiting"), 0);
}

World OverRings(int workers) {
  return {.name = absl::StrCat("Nccl", workers, "WorkersBesideRings"),
          .workers = workers,
          .run = [](int count, const LivenessCheck& check, const WorkerBody& body) {
            const RingLayout layout = LayOutRings(AllPairs(count, Bytes(4096)));
            RunOverNccl(MakeRingJob(count, layout, check), check, body);
          }};
}

World OverHub(int workers) {
  return {.name = absl::StrCat("Nccl", workers, "WorkersInProcess"),
          .workers = workers,
          .run = [](int count, const LivenessCheck& check, const WorkerBody& body) {
            RunOverNccl(MakeInProcessJob(count, check), check, body);
          }};
}

INSTANTIATE_TEST_SUITE_P(Nccl, TransportConformance,
                         testing::Values(OverRings(2), OverHub(3), OverRings(4)), WorldName);

}  // namespace
}  // namespace siphon
