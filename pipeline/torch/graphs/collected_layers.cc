#include "pipeline/torch/graphs/collected_layers.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/memory/storage_memory.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "planner/status.h"
#include "swap/memory_ledger.h"

namespace siphon {

struct SavedMemory {
  c10::Storage storage;         // empty when no operator needs it any more
  size_t views = 0;             // saved tensors on it
  size_t leaves = 0;            // graphs that begin with it
  const void* group = nullptr;  // CollectedLayers::Group that it goes with; null: it stays
  bool away = false;
};

namespace {

std::string TextOf(StageRange layers) {
  return absl::StrCat("layers [", layers.begin, ", ", layers.end, ")");
}

// A tensor as an operator holds it: a view on memory that may be away meanwhile.
class SavedView final : public HeldTensor {
 public:
  SavedView(at::Tensor tensor, std::shared_ptr<SavedMemory> memory)
      : tensor_(std::move(tensor)), memory_(std::move(memory)) {
    if (memory_ != nullptr) ++memory_->views;
  }
  ~SavedView() override {
    if (memory_ != nullptr && --memory_->views == 0) memory_->storage = c10::Storage();
  }
  SavedView(const SavedView&) = delete;
  SavedView& operator=(const SavedView&) = delete;

  at::Tensor Restore() override {
    TORCH_CHECK(memory_ == nullptr || !memory_->away, "a saved tensor of ", tensor_.sizes(),
                " is needed while it is away");
    return tensor_;
  }

 private:
  const at::Tensor tensor_;
  const std::shared_ptr<SavedMemory> memory_;  // null: it stays
};

absl::Span<std::byte> SpanOf(const SavedMemory& memory) {
  if (memory.views == 0) return {};
  return BytesOf(memory.storage);
}

// What is not the layers' to move. Memory without an allocator is somebody else's: the data. An
// operator of a device may keep numbers on the host, and a few whole numbers beside its tensors
// (states of random generators, of attention), which no plan counts.
bool IsNotTheirs(const at::Tensor& tensor, at::Device device) {
  const c10::Storage& storage = tensor.storage();
  if (storage.allocator() == nullptr || storage.nbytes() == 0) return true;
  if (storage.device_type() != device.type()) return true;
  return !device.is_cpu() && !tensor.is_floating_point() && storage.nbytes() < kTensorAlignment;
}

// Only graphs hold it, and the books.
bool IsHeldByGraphsOnly(const SavedMemory& memory) {
  return memory.storage.use_count() == memory.views + memory.leaves + 1;
}

}  // namespace

struct CollectedLayers::Group {
  StageRange layers;
  FirstTensors first;
  std::vector<std::shared_ptr<SavedMemory>> memory;  // in the order of saving
  bool complete = false;
  bool wants_free = false;  // some of it waits for others to release it

  bool Owns(const SavedMemory& each) const { return each.group == this; }
  void KeepOwn() {
    std::erase_if(memory, [this](const auto& each) { return !Owns(*each); });
  }
};

class CollectedLayers::Sink final : public SavedTensorSink {
 public:
  // `group`: null for layers in none.
  void Begin(CollectedLayers* books, Group* group, const std::vector<at::Tensor>& parameters,
             at::Device device) {
    books_ = books;
    group_ = group;
    device_ = device;
    parameters_.clear();
    for (const at::Tensor& parameter : parameters) {
      parameters_.push_back(parameter.storage().unsafeGetStorageImpl());
    }
  }

  std::unique_ptr<HeldTensor> Save(at::Tensor tensor) override {
    const c10::Storage& storage = tensor.storage();
    const c10::StorageImpl* key = storage.unsafeGetStorageImpl();
    const bool is_parameter =
        std::find(parameters_.begin(), parameters_.end(), key) != parameters_.end();
    Group* const group =
        group_ != nullptr && !is_parameter && group_->first.Take(tensor) ? group_ : nullptr;
    if (is_parameter || IsNotTheirs(tensor, device_)) {
      return std::make_unique<SavedView>(std::move(tensor), nullptr);
    }
    std::shared_ptr<SavedMemory>& memory = books_->memory_[key];
    if (memory == nullptr || memory->views == 0) {
      memory = std::make_shared<SavedMemory>();
      memory->storage = storage;
    }
    if (memory->group != group) {
      memory->group = group;
      if (group != nullptr) group->memory.push_back(memory);
    }
    return std::make_unique<SavedView>(std::move(tensor), memory);
  }

 private:
  CollectedLayers* books_ = nullptr;
  Group* group_ = nullptr;
  at::Device device_ = at::kCPU;
  std::vector<const c10::StorageImpl*> parameters_;  // of a layer: a dozen
};

CollectedLayers::CollectedLayers() = default;
CollectedLayers::~CollectedLayers() = default;
CollectedLayers::CollectedLayers(CollectedLayers&&) noexcept = default;
CollectedLayers& CollectedLayers::operator=(CollectedLayers&&) noexcept = default;

absl::Status CollectedLayers::CheckNotCollected(StageRange layers) const {
  for (const auto& group : groups_) {
    if (layers.begin >= group->layers.end || group->layers.begin >= layers.end) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(TextOf(layers), " are collected already, as ", TextOf(group->layers)));
  }
  return absl::OkStatus();
}

absl::Status CollectedLayers::Add(const LayerTensors& tensors) {
  SIPHON_RETURN_IF_ERROR(CheckNotCollected(tensors.layers));
  groups_.push_back(std::make_unique<Group>(
      Group{.layers = tensors.layers, .first = FirstTensors(tensors.first)}));
  return absl::OkStatus();
}

CollectedLayers::Group* CollectedLayers::FindGroup(int layer) const {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [layer](const auto& group) {
    return group->layers.begin <= layer && layer < group->layers.end;
  });
  return found == groups_.end() ? nullptr : found->get();
}

const FirstTensors* CollectedLayers::FirstOf(int layer) const {
  const Group* const group = FindGroup(layer);
  return group == nullptr ? nullptr : &group->first;
}

SavedTensorSink* CollectedLayers::SinkOf(int layer, const std::vector<at::Tensor>& parameters,
                                         at::Device device) {
  if (groups_.empty()) return nullptr;
  if (sink_ == nullptr) sink_ = std::make_unique<Sink>();
  sink_->Begin(this, FindGroup(layer), parameters, device);
  return sink_.get();
}

void CollectedLayers::HeldByGraph(const at::Tensor& input) {
  const auto found = memory_.find(input.storage().unsafeGetStorageImpl());
  if (found != memory_.end() && found->second->views > 0) ++found->second->leaves;
}

std::vector<StageRange> CollectedLayers::Complete(int layer, const std::vector<at::Tensor>& outputs,
                                                  bool is_last) {
  std::set<const c10::StorageImpl*> passed_on;
  if (!is_last) {
    for (const at::Tensor& output : outputs) {
      passed_on.insert(output.storage().unsafeGetStorageImpl());
    }
  }
  std::vector<StageRange> done;
  for (const auto& group : groups_) {
    if (group->complete || layer + 1 < group->layers.end) continue;
    group->KeepOwn();
    std::erase_if(group->memory, [](const auto& each) { return each->views == 0; });
    if (layer + 1 == group->layers.end) {
      const bool waits =
          std::any_of(group->memory.begin(), group->memory.end(), [&](const auto& each) {
            return passed_on.contains(each->storage.unsafeGetStorageImpl());
          });
      if (waits) continue;
    } else {  // behind the layer that has taken the output, whoever saved it
      for (const auto& each : group->memory) {
        if (!IsHeldByGraphsOnly(*each)) each->group = nullptr;
      }
      group->KeepOwn();
    }
    group->complete = true;
    done.push_back(group->layers);
  }
  return done;
}

const StageRange* CollectedLayers::EndingAt(int layer) const {
  for (const auto& group : groups_) {
    if (group->layers.end == layer + 1) return &group->layers;
  }
  return nullptr;
}

absl::StatusOr<CollectedLayers::Group*> CollectedLayers::FindComplete(StageRange layers) const {
  for (const auto& group : groups_) {
    if (group->layers == layers && group->complete) return group.get();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(TextOf(layers), " were not collected by a forward pass"));
}

absl::StatusOr<TensorSpans> CollectedLayers::Memory(StageRange layers) const {
  SIPHON_ASSIGN_OR_RETURN(const Group* group, FindComplete(layers));
  TensorSpans spans;
  for (const auto& each : group->memory) spans.push_back(SpanOf(*each));
  return spans;
}

absl::Status CollectedLayers::Free(StageRange layers) {
  SIPHON_ASSIGN_OR_RETURN(Group * group, FindComplete(layers));
  group->wants_free = true;
  RetryFree();
  return absl::OkStatus();
}

void CollectedLayers::RetryFree() {
  for (const auto& group : groups_) {
    if (!group->wants_free) continue;
    group->wants_free = false;
    for (const auto& each : group->memory) {
      if (each->away || each->views == 0) continue;
      if (!IsHeldByGraphsOnly(*each)) {
        group->wants_free = true;
        continue;
      }
      FreeStorage(each->storage);
      each->away = true;
    }
  }
}

absl::StatusOr<TensorSpans> CollectedLayers::Refill(StageRange layers) {
  SIPHON_ASSIGN_OR_RETURN(Group * group, FindComplete(layers));
  group->wants_free = false;
  const MemoryKindScope kind(MemoryKind::kActivations);
  TensorSpans spans;
  for (const auto& each : group->memory) {
    if (!each->away || each->views == 0) {
      spans.emplace_back();
      continue;
    }
    RefillStorage(each->storage);
    each->away = false;
    spans.push_back(SpanOf(*each));
  }
  return spans;
}

}  // namespace siphon
