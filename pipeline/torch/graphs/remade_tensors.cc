#include "pipeline/torch/graphs/remade_tensors.h"

#include <algorithm>
#include <exception>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/memory/tensor_bytes.h"

namespace siphon {
namespace {

// Ends a forward pass of which nothing more is wanted. It goes through LibTorch and through a
// user's layer, and ends where their errors do, in CallTorch.
struct NothingMoreWanted final : std::exception {
  const char* what() const noexcept override { return "nothing more of the layer is wanted"; }
};

// A tensor that the second pass saves: its place may have it, the graph of that pass does not.
class NotHeld final : public HeldTensor {
 public:
  at::Tensor Restore() override {
    TORCH_CHECK(false, "the graph of a pass that computes a layer again was run");
  }
};

}  // namespace

struct RemadeTensors::Place {
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> shape;
  bool stays = false;   // a parameter, or not to be dropped
  bool is_read = true;  // by an operator that is still to run
  at::Tensor tensor;    // from the second pass until its operator has run

  bool Waits() const { return !stays && is_read && !tensor.defined(); }
};

// A saved tensor of the first pass, as its operator holds it.
class RemadeTensors::Kept final : public HeldTensor {
 public:
  explicit Kept(std::shared_ptr<Place> place) : place_(std::move(place)) {}
  ~Kept() override {
    place_->is_read = false;
    place_->tensor.reset();
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  at::Tensor Restore() override {
    TORCH_CHECK(place_->tensor.defined(), "the graph of a dropped layer was run");
    return place_->tensor;
  }

 private:
  const std::shared_ptr<Place> place_;
};

class RemadeTensors::First final : public SavedTensorSink {
 public:
  First(std::vector<std::shared_ptr<Place>>* places, FirstTensors* dropped,
        const std::vector<at::Tensor>& parameters)
      : places_(places), dropped_(dropped) {
    for (const at::Tensor& parameter : parameters) {
      parameters_.insert(parameter.storage().unsafeGetStorageImpl());
    }
  }

  std::unique_ptr<HeldTensor> Save(at::Tensor tensor) override {
    auto place = std::make_shared<Place>();
    place->type = tensor.scalar_type();
    place->shape = tensor.sizes().vec();
    place->stays =
        parameters_.contains(tensor.storage().unsafeGetStorageImpl()) || !dropped_->Take(tensor);
    if (place->stays) place->tensor = std::move(tensor);
    places_->push_back(place);
    return std::make_unique<Kept>(std::move(place));
  }

 private:
  std::vector<std::shared_ptr<Place>>* const places_;
  FirstTensors* const dropped_;
  std::set<const c10::StorageImpl*> parameters_;
};

class RemadeTensors::Second final : public SavedTensorSink {
 public:
  Second(const std::vector<std::shared_ptr<Place>>* places, Extent extent)
      : places_(places), extent_(extent) {
    for (size_t place = 0; place < places_->size(); ++place) {
      if ((*places_)[place]->Waits()) end_ = place + 1;
    }
  }

  std::unique_ptr<HeldTensor> Save(at::Tensor tensor) override {
    if (next_ == places_->size()) Refuse(absl::StrCat("saves ", DescribeTensor(tensor), " too"));
    Place& place = *(*places_)[next_];
    if (tensor.scalar_type() != place.type || tensor.sizes() != at::IntArrayRef(place.shape)) {
      Refuse(absl::StrCat(
          "saves ", DescribeTensor(tensor), " where it saved ",
          DescribeTensor(at::empty(place.shape, at::TensorOptions(place.type).device(at::kMeta)))));
    }
    if (place.Waits()) place.tensor = std::move(tensor);
    ++next_;
    if (next_ == end_ && extent_ == Extent::kLastSaved) throw NothingMoreWanted();
    return std::make_unique<NotHeld>();
  }

  bool WasStopped() const { return extent_ == Extent::kLastSaved && next_ == end_; }
  bool IsThrough() const { return next_ == places_->size(); }
  // What is wrong with the tensors; empty where nothing is.
  const std::string& error() const { return error_; }
  size_t next() const { return next_; }

 private:
  [[noreturn]] void Refuse(std::string what) {
    if (error_.empty()) error_ = absl::StrCat("as its tensor ", next_, " it ", what);
    throw NothingMoreWanted();
  }

  const std::vector<std::shared_ptr<Place>>* const places_;
  const Extent extent_;
  size_t end_ = 0;  // behind the last place that waits for its tensor
  size_t next_ = 0;
  std::string error_;
};

RemadeTensors::RemadeTensors() = default;
RemadeTensors::~RemadeTensors() = default;
RemadeTensors::RemadeTensors(RemadeTensors&&) noexcept = default;
RemadeTensors& RemadeTensors::operator=(RemadeTensors&&) noexcept = default;

SavedTensorSink* RemadeTensors::FirstPass(const std::vector<at::Tensor>& parameters, Bytes bytes) {
  places_.clear();
  dropped_ = FirstTensors(bytes);
  first_ = std::make_unique<First>(&places_, &dropped_, parameters);
  return first_.get();
}

SavedTensorSink* RemadeTensors::SecondPass(Extent extent) {
  first_ = nullptr;
  second_ = std::make_unique<Second>(&places_, extent);
  return second_.get();
}

bool RemadeTensors::IsComplete() const {
  return std::none_of(places_.begin(), places_.end(),
                      [](const auto& place) { return place->Waits(); });
}

absl::Status RemadeTensors::CheckSecondPass(absl::Status pass) const {
  std::string error = second_->error();
  if (error.empty()) {
    if (second_->WasStopped()) return absl::OkStatus();
    if (!pass.ok() || second_->IsThrough()) return pass;
    error = absl::StrCat("it saves ", second_->next(), " tensors of ", places_.size());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the layer saves other tensors for its backward when it is computed again: ", error,
      "; a layer that is dropped has to compute the same each time"));
}

}  // namespace siphon
