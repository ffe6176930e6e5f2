#include "planner/lowering/element_state.h"

namespace siphon {

bool HasStateOfElements(const ModelProfile& profile) {
  Bytes state;
  Bytes parameters;
  for (const LayerProfile& layer : profile.layers) {
    state += layer.optimizer_state;
    parameters += layer.parameters;
  }
  constexpr int64_t kWidestElement = 4;
  return state.value >= parameters.value / kWidestElement;
}

}  // namespace siphon
