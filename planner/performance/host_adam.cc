#include "planner/performance/host_adam.h"

#include <cstdint>

#include "absl/numeric/int128.h"

namespace siphon {
namespace {

constexpr int kPicosecondsPerParameter = 220;
constexpr int kPicosecondsPerNano = 1'000;

}  // namespace

Nanos HostAdamTime(const ModelProfile& profile, const ParameterBytes& bytes) {
  absl::int128 parameters = 0;
  for (const LayerProfile& layer : profile.layers) {
    parameters += layer.parameters.value / bytes.weight;
  }
  return Nanos(static_cast<int64_t>(parameters * kPicosecondsPerParameter / kPicosecondsPerNano));
}

}  // namespace siphon
