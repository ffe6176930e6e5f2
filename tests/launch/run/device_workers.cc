#include "tests/launch/run/device_workers.h"

#include "launch/run/trainer.h"
#include "planner/status.h"
#include "swap/device/load_cuda_module.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/device_job.h"
#include "tests/support/fake_cuda/fake_control.h"

namespace siphon {

const CudaModule& TheCudaModule() {
  static const CudaModule* const module = [] {
    const auto loaded = LoadCudaModule(SIPHON_CUDA_MODULE);
    SIPHON_CHECK(loaded.ok(), loaded.status().message());
    return *loaded;
  }();
  return *module;
}

Lent FirstLent(const PreparedJob& prepared) {
  for (size_t owner = 0; owner < prepared.parking.size(); ++owner) {
    for (const auto& [place, bytes] : prepared.parking[owner].bytes) {
      if (place.tier == Placement::kPeerSwap) return {WorkerId(static_cast<int>(owner)), place};
    }
  }
  ADD_FAILURE() << "nobody parks with another worker";
  return {};
}

void DeviceWorkers::SetUp() {
  ASSERT_TRUE(FakeCuda::IsThere()) << "LD_PRELOAD the fake libcudart";
  FakeCuda::Reset();
}

JobConfig DeviceWorkers::PlainJob(const std::string& backend) const {
  return siphon::PlainJob(Job(4), backend, folder_);
}

JobConfig DeviceWorkers::DeviceJob(const std::string& strategy, int64_t percent) const {
  return Tight(PlainJob("cuda"), strategy, percent);
}

DeviceWorkers::Bits DeviceWorkers::OnCpu() const {
  const auto outcome = Trainer(PlainJob("cpu")).Train();
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.ok() ? CheckpointBits(outcome->last_checkpoint) : Bits();
}

SeatedRun DeviceWorkers::RunOn(const PreparedJob& prepared, const DeviceChange& change,
                               std::vector<Bytes>* limits) {
  std::vector<OtherTorchDevice> devices(static_cast<size_t>(WorkerCount(prepared.plan.training)));
  std::vector<WorkerDevice> seats;
  for (OtherTorchDevice& torch : devices) {
    seats.push_back({&torch, &TheCudaModule(), [](DeviceId device) { return device.value % 2; }});
  }
  SeatedRun run = RunSeats(prepared, [&](WorkerSeat& seat) {
    const auto worker = static_cast<size_t>(seat.me.value);
    seat.device = &seats[worker];
    seat.more_shared = nullptr;
    if (change) change(seat, devices[worker]);
  });
  for (const OtherTorchDevice& torch : devices) {
    if (limits != nullptr) limits->push_back(torch.limit());
  }
  return run;
}

DeviceWorkers::Run DeviceWorkers::Train(const PreparedJob& prepared, const SeatChange& change) {
  Run run;
  run.seats = RunOn(
      prepared,
      [&](WorkerSeat& seat, OtherTorchDevice&) {
        if (change) change(seat);
      },
      &run.limits);
  for (const auto& end : run.seats.ends) EXPECT_TRUE(end.ok()) << end.status();
  if (run.seats.ends[0].ok()) run.bits = CheckpointBits(run.seats.ends[0]->last_checkpoint);
  return run;
}

}  // namespace siphon
