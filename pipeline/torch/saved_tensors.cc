#include "pipeline/torch/saved_tensors.h"

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "pipeline/torch/aten.h"

namespace siphon {
namespace {

thread_local int discarding = 0;

class Discarded final : public torch::autograd::SavedVariableHooks {
 public:
  void call_pack_hook(const at::Tensor& /*tensor*/) override {}
  at::Tensor call_unpack_hook() override {
    TORCH_CHECK(false, "the graph of a dropped layer was run");
  }
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data()
      const override {
    return std::nullopt;
  }
};

class HookEngine final : public torch::autograd::Engine {
 public:
  // Never destroyed: its threads may outlive main.
  static torch::autograd::Engine& Instance() {
    static auto* const engine = new HookEngine;
    return *engine;
  }

  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (discarding == 0) return nullptr;
    return std::make_unique<Discarded>();
  }
};

}  // namespace

DiscardSavedTensors::DiscardSavedTensors() {
  static std::once_flag set;
  std::call_once(set, [] { torch::autograd::set_default_engine_stub(&HookEngine::Instance); });
  ++discarding;
}

DiscardSavedTensors::~DiscardSavedTensors() { --discarding; }

}  // namespace siphon
