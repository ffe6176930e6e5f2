#include "pipeline/torch/graphs/saved_tensors.h"

#include <mutex>
#include <optional>
#include <utility>

namespace siphon {
namespace {

thread_local SavedTensorSink* current_sink = nullptr;

// Between LibTorch and a sink.
class SinkHooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit SinkHooks(SavedTensorSink* sink) : sink_(sink) {}

  // As detach() gives it, which takes twice as long: keeping the variable itself would keep the
  // operator that made it, which may be the one that holds this.
  void call_pack_hook(const at::Tensor& tensor) override {
    saved_ = sink_->Save(tensor.tensor_data());
  }
  at::Tensor call_unpack_hook() override { return saved_->Restore(); }
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data()
      const override {
    return std::nullopt;
  }

 private:
  SavedTensorSink* const sink_;  // while tensors are saved
  std::unique_ptr<HeldTensor> saved_;
};

class HookEngine final : public torch::autograd::Engine {
 public:
  // Never destroyed: its threads may outlive main.
  static torch::autograd::Engine& Instance() {
    static auto* const engine = new HookEngine;
    return *engine;
  }

  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (current_sink == nullptr) return nullptr;
    return std::make_unique<SinkHooks>(current_sink);
  }
};

SavedTensorSink* Exchange(SavedTensorSink* sink) {
  UseEngineWithSinks();
  return std::exchange(current_sink, sink);
}

}  // namespace

void UseEngineWithSinks() {
  static std::once_flag set;
  std::call_once(set, [] { torch::autograd::set_default_engine_stub(&HookEngine::Instance); });
}

CollectSavedTensors::CollectSavedTensors(SavedTensorSink* sink) : previous_(Exchange(sink)) {}
CollectSavedTensors::~CollectSavedTensors() { Exchange(previous_); }

}  // namespace siphon
