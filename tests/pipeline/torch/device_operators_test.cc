// Which operators of LibTorch built-in layers, losses, norms and updates call, forward and
// backward, and why each gives the same bits in every run on a CUDA device too. Kernels there are
// not tried here; that LibTorch 2.11 refuses none of these with train.deterministic was read from
// its libtorch_cuda: what calls at::Context::alertNotDeterministic there is adaptive and 3d
// pooling, padding by reflection and replication, resampling, unpooling, histograms, medians with
// their place, losses of planes, CTC, grids, embedding_bag's maxima, index_reduce, put and scatter
// in some forms.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/layers.h"
#include "pipeline/torch/parameters/optimizers.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

enum class Because {
  kNothingIsComputed,    // memory, shapes, copies
  kElementsAreAlone,     // none depends on the order of others
  kShapesGiveTheOrder,   // sums without atomics, in blocks that the shape decides
  kCuBlasHasAWorkspace,  // one of a fixed size for each handle and stream, so one algorithm
  kLibTorchWasAsked,     // several algorithms; with train.deterministic one that is
};

const std::map<std::string, Because>& LookedAt() {
  static const auto* const table = [] {
    auto* const made = new std::map<std::string, Because>();
    const auto add = [made](Because because, const std::vector<std::string>& names) {
      for (const std::string& name : names) (*made)[name] = because;
    };
    add(Because::kNothingIsComputed, {"_has_compatible_shallow_copy_type",
                                      "_local_scalar_dense",
                                      "_reshape_alias",
                                      "_to_copy",
                                      "_unsafe_view",
                                      "as_strided",
                                      "cat",
                                      "clone",
                                      "contiguous",
                                      "copy_",
                                      "detach",
                                      "embedding",
                                      "empty",
                                      "empty_like",
                                      "empty_strided",
                                      "expand",
                                      "index_select",
                                      "item",
                                      "narrow",
                                      "reshape",
                                      "resize_",
                                      "resolve_conj",
                                      "select",
                                      "select_backward",
                                      "slice",
                                      "split",
                                      "t",
                                      "to",
                                      "transpose",
                                      "view"});
    add(Because::kElementsAreAlone,
        {"_fused_adam_",  "_fused_adamw_", "_fused_sgd_", "add",     "add_", "bernoulli_",
         "clamp_min",     "div",           "div_",        "fill_",   "full", "gelu",
         "gelu_backward", "mul",           "mul_",        "normal_", "relu", "threshold_backward",
         "triu_",         "zero_",         "zeros"});
    // nll_loss: of rows; that of planes (nll_loss2d) has no such order.
    add(Because::kShapesGiveTheOrder,
        {"_log_softmax", "_log_softmax_backward_data", "_softmax", "_softmax_backward_data",
         "cross_entropy_loss", "layer_norm", "linalg_vector_norm", "log_softmax",
         "native_layer_norm", "native_layer_norm_backward", "nll_loss", "nll_loss_backward",
         "nll_loss_forward", "nll_loss_nd", "softmax", "sum"});
    add(Because::kCuBlasHasAWorkspace, {"addmm", "bmm", "linear", "matmul", "mm"});
    // Tokens sorted by a stable order and added one after the other; attention's backward by flash
    // or memory-efficient kernels told to be deterministic, cuDNN's left out.
    add(Because::kLibTorchWasAsked,
        {"embedding_backward", "embedding_dense_backward", "scaled_dot_product_attention"});
    return made;
  }();
  return *table;
}

// The operators that LibTorch dispatches while this lives, on any thread.
class Observer {
 public:
  Observer() {
    names_.clear();
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(&Observer::See).scopes({at::RecordScope::FUNCTION}));
  }
  ~Observer() { at::removeCallback(handle_); }
  // Those that nobody has looked at. The CPU's own ways of others do not exist on a device.
  static std::set<std::string> NotLookedAt() {
    const std::lock_guard lock(mutex_);
    std::set<std::string> names;
    for (const std::string& seen : names_) {
      const std::string name(absl::StripPrefix(seen, "aten::"));
      const bool is_cpus = absl::StrContains(name, "_for_cpu") || absl::StrContains(name, "mkldnn");
      const bool is_operator = name != seen || seen == "detach";
      if (is_operator && !is_cpus && LookedAt().count(name) == 0) names.insert(name);
    }
    return names;
  }
  static size_t Count() {
    const std::lock_guard lock(mutex_);
    return names_.size();
  }

 private:
  static std::unique_ptr<at::ObserverContext> See(const at::RecordFunction& function) {
    const std::lock_guard lock(mutex_);
    names_.insert(function.name());
    return nullptr;
  }
  static inline std::mutex mutex_;
  static inline std::set<std::string> names_;
  at::CallbackHandle handle_;
};

// A step of training in two stages with what leaves memory and comes back, and one of validation.
void Train(const Model& model, const std::string& optimizer, HandRunPipeline::Backward backward) {
  for (const double momentum : {0.0, 0.9}) {
    OptimizerOptions options{.name = optimizer, .weight_decay = 0.1};
    options.momentum = momentum;
    HandRunPipeline pipeline(model, 2, 17, options);
    if (backward == HandRunPipeline::Backward::kWhole) {
      pipeline.DropInRunsOf(1);
      pipeline.ParkInRunsOf(1);
    }
    const TokenBatch batch(model.spec, /*microbatches=*/3, /*samples=*/2, /*seed=*/100);
    pipeline.Train(batch.Inputs(0, StepMode::kTrain),
                   {.update = 1, .learning_rate = 1e-2, .gradient_scale = 0.7f}, backward);
    pipeline.Evaluate(batch.Inputs(0, StepMode::kEvaluate));
  }
}

TEST(DeviceOperators, OfAllThatIsBuiltInHaveBeenLookedAt) {
  const Observer observer;
  for (const std::string& kind : KnownModelKinds()) {
    for (const Precision precision :
         {Precision::kFloat32, Precision::kBFloat16, Precision::kFloat16}) {
      for (const bool is_plain : {true, false}) {
        ModelOptions options = TinyGpt();
        options.kind = kind;
        options.flash_attention = is_plain;
        options.dropout = is_plain ? 0.0 : 0.1;
        options.tie_embeddings = is_plain;
        Model model = *BuildModel(options);
        SetPrecision(precision, HeldVectors::kFloat32, model);
        for (const std::string& optimizer : KnownOptimizers()) {
          SCOPED_TRACE(kind + " " + optimizer);
          Train(model, optimizer,
                is_plain ? HandRunPipeline::Backward::kWhole : HandRunPipeline::Backward::kHalves);
        }
      }
    }
  }
  EXPECT_GT(Observer::Count(), 50u);
  EXPECT_EQ(absl::StrJoin(Observer::NotLookedAt(), " "), "")
      << "does LibTorch give the same bits in every run on a CUDA device, with "
         "train.deterministic? "
         "Say above why.";
}

TEST(DeviceOperators, AreSeenWhereTheyAreNew) {
  const Observer observer;
  at::ones({3}).cumsum(0);
  EXPECT_EQ(absl::StrJoin(Observer::NotLookedAt(), " "), "cumsum ones");
}

}  // namespace
}  // namespace siphon
