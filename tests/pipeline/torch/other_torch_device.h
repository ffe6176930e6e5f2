#ifndef SIPHON_TESTS_PIPELINE_TORCH_OTHER_TORCH_DEVICE_H_
#define SIPHON_TESTS_PIPELINE_TORCH_OTHER_TORCH_DEVICE_H_

#include <optional>

#include "absl/status/status.h"
#include "pipeline/torch/device/torch_device.h"
#include "planner/units.h"
#include "tests/pipeline/torch/other_device.h"

namespace siphon {

// LibTorch's side of a worker on that device; it remembers what it was limited to.
class OtherTorchDevice : public TorchDevice {
 public:
  ComputeDevice device() const override { return kOtherDevice; }
  std::optional<void*> work_stream() const override { return std::nullopt; }
  absl::Status Limit(Bytes most) override {
    limit_ = most;
    return absl::OkStatus();
  }
  TorchMemory memory() const override { return {}; }
  void ResetPeak() override {}
  std::optional<DeviceShortage> shortage() const override { return shortage_; }
  Bytes limit() const { return limit_; }
  void RunShort(const DeviceShortage& shortage) { shortage_ = shortage; }

 private:
  Bytes limit_;
  std::optional<DeviceShortage> shortage_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_TORCH_OTHER_TORCH_DEVICE_H_
