#include "launch/profile/layer_keys.h"

namespace siphon {

const std::vector<LayerKey>& LayerKeys() {
  static const auto* const keys = new std::vector<LayerKey>{
      {.name = "forward", .time = &LayerProfile::forward},
      {.name = "input_backward", .time = &LayerProfile::input_backward},
      {.name = "weight_backward", .time = &LayerProfile::weight_backward},
      {.name = "whole_backward", .time = &LayerProfile::whole_backward, .only_if_known = true},
      {.name = "recompute", .time = &LayerProfile::recompute, .only_if_known = true},
      {.name = "optimizer", .time = &LayerProfile::optimizer},
      {.name = "parameters", .size = &LayerProfile::parameters},
      {.name = "gradients", .size = &LayerProfile::gradients},
      {.name = "optimizer_state", .size = &LayerProfile::optimizer_state},
      {.name = "boundary", .size = &LayerProfile::boundary},
      {.name = "forward_workspace", .size = &LayerProfile::forward_workspace},
      {.name = "backward_workspace", .size = &LayerProfile::backward_workspace},
      {.name = "input_backward_workspace",
       .size = &LayerProfile::input_backward_workspace,
       .only_if_known = true},
      {.name = "weight_backward_workspace",
       .size = &LayerProfile::weight_backward_workspace,
       .only_if_known = true},
      {.name = "saved_input", .size = &LayerProfile::saved_input, .only_if_known = true},
      {.name = "saved_output", .size = &LayerProfile::saved_output, .only_if_known = true},
      {.name = "kept_for_weights", .size = &LayerProfile::kept_for_weights},
  };
  return *keys;
}

}  // namespace siphon
