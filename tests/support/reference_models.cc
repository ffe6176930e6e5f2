#include "tests/support/reference_models.h"

#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/keyed_random.h"

namespace siphon::reference {
namespace {

constexpr double kGptEpsilon = 1e-5;
constexpr double kBertEpsilon = 1e-12;

// The draws of one layer, counted from 0.
class LayerDraws {
 public:
  LayerDraws(const Draws& draws, int layer) : draws_(draws), layer_(layer) {}

  at::Tensor operator()(const at::Tensor& x) {
    if (draws_.probability == 0) return x;
    return x * KeyedDropoutMask(draws_.seed, draws_.step, draws_.microbatch, layer_, draw_++,
                                x.sizes(), draws_.probability, x.scalar_type(), x.device());
  }
  bool active() const { return draws_.probability > 0; }

 private:
  const Draws& draws_;
  int layer_;
  int draw_ = 0;
};

// Between two layers: contiguous there and back, as if the pipeline were cut.
at::Tensor Boundary(at::Tensor x) {
  x = x.contiguous();
  if (x.requires_grad()) {
    x.register_hook([](const at::Tensor& gradient) { return gradient.contiguous(); });
  }
  return x;
}

at::Tensor Activation(const std::string& name, const at::Tensor& x) {
  if (name == "gelu_new") return at::gelu(x, "tanh");
  if (name == "gelu") return at::gelu(x, "none");
  if (name == "relu") return at::relu(x);
  throw std::invalid_argument(absl::StrCat("activation ", name));
}

at::Tensor Normalise(Leaves& parameter, const std::string& prefix, const at::Tensor& x,
                     double epsilon) {
  at::Tensor weight = parameter(prefix + ".weight");
  at::Tensor bias = parameter(prefix + ".bias");
  // CUDA's norm takes vectors of 16 bits and widens them itself; a CPU's, given such, would round
  // its mean and its deviation as well.
  if (x.device().is_cpu()) {
    weight = weight.to(at::kFloat);
    bias = bias.to(at::kFloat);
  }
  return at::layer_norm(x, {x.size(-1)}, weight, bias, epsilon);
}

// [out, in] weights.
at::Tensor Linear(Leaves& parameter, const std::string& prefix, const at::Tensor& x) {
  const at::Tensor weight = parameter(prefix + ".weight");
  const at::Tensor bias = parameter(prefix + ".bias").to(x.scalar_type());
  return at::linear(x, weight, bias);
}

// Hugging Face's Conv1D: [in, out] weights.
at::Tensor Projection(Leaves& parameter, const std::string& prefix, const at::Tensor& x) {
  const at::Tensor weight = parameter(prefix + ".weight");
  const at::Tensor bias = parameter(prefix + ".bias").to(x.scalar_type());
  const at::Tensor rows = at::addmm(bias, x.reshape({-1, x.size(-1)}), weight);
  return rows.view({x.size(0), x.size(1), weight.size(1)});
}

// q, k, v and the result: [samples, sequence, hidden].
at::Tensor Attention(const ModelOptions& options, LayerDraws& dropout, at::Tensor q, at::Tensor k,
                     at::Tensor v, bool causal) {
  const int64_t samples = q.size(0), length = q.size(1), hidden = q.size(2);
  const int64_t width = hidden / options.heads;
  for (at::Tensor* tensor : {&q, &k, &v}) {
    *tensor = tensor->view({samples, length, options.heads, width}).transpose(1, 2);
  }
  at::Tensor attended;
  if (options.flash_attention && !dropout.active()) {
    attended = at::scaled_dot_product_attention(q, k, v, {}, 0.0, causal);
  } else {
    at::Tensor scores =
        at::matmul(q, k.transpose(-2, -1)) * (1.0 / std::sqrt(static_cast<double>(width)));
    if (causal) {
      const at::Tensor future = at::ones({length, length}, q.options().dtype(at::kBool)).triu(1);
      scores = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
    }
    attended = at::matmul(dropout(at::softmax(scores, -1)), v);
  }
  return attended.transpose(1, 2).reshape({samples, length, hidden});
}

at::Tensor Gpt(const ModelOptions& options, Leaves& parameter, const at::Tensor& tokens,
               const Draws& draws) {
  LayerDraws first(draws, 0);
  const at::Tensor words = parameter("transformer.wte.weight");
  const at::Tensor positions = parameter("transformer.wpe.weight");
  at::Tensor x = Boundary(first(at::embedding(words, tokens) + positions));

  for (int block = 0; block < options.layers; ++block) {
    LayerDraws dropout(draws, 1 + block);
    const std::string prefix = absl::StrCat("transformer.h.", block);
    const at::Tensor normalised = Normalise(parameter, prefix + ".ln_1", x, kGptEpsilon);
    const auto qkv =
        Projection(parameter, prefix + ".attn.c_attn", normalised).split(options.hidden, -1);
    const at::Tensor attended = Attention(options, dropout, qkv[0], qkv[1], qkv[2], true);
    x = x + dropout(Projection(parameter, prefix + ".attn.c_proj", attended));

    at::Tensor wide = Normalise(parameter, prefix + ".ln_2", x, kGptEpsilon);
    wide = Activation(options.activation, Projection(parameter, prefix + ".mlp.c_fc", wide));
    x = Boundary(x + dropout(Projection(parameter, prefix + ".mlp.c_proj", wide)));
  }

  x = Normalise(parameter, "transformer.ln_f", x, kGptEpsilon);
  return at::linear(
      x, parameter(options.tie_embeddings ? "transformer.wte.weight" : "lm_head.weight"));
}

at::Tensor Bert(const ModelOptions& options, Leaves& parameter, const at::Tensor& tokens,
                const Draws& draws) {
  LayerDraws first(draws, 0);
  const std::string embeddings = "bert.embeddings.";
  const at::Tensor words = parameter(embeddings + "word_embeddings.weight");
  const at::Tensor positions = parameter(embeddings + "position_embeddings.weight");
  const at::Tensor types = parameter(embeddings + "token_type_embeddings.weight");
  at::Tensor x = at::embedding(words, tokens) + types.select(0, 0) + positions;
  x = Boundary(first(Normalise(parameter, embeddings + "LayerNorm", x, kBertEpsilon)));

  for (int block = 0; block < options.layers; ++block) {
    LayerDraws dropout(draws, 1 + block);
    const std::string prefix = absl::StrCat("bert.encoder.layer.", block);
    const at::Tensor q = Linear(parameter, prefix + ".attention.self.query", x);
    const at::Tensor k = Linear(parameter, prefix + ".attention.self.key", x);
    const at::Tensor v = Linear(parameter, prefix + ".attention.self.value", x);
    const at::Tensor attended = Attention(options, dropout, q, k, v, false);
    const at::Tensor mixed =
        dropout(Linear(parameter, prefix + ".attention.output.dense", attended));
    x = Normalise(parameter, prefix + ".attention.output.LayerNorm", x + mixed, kBertEpsilon);

    at::Tensor wide =
        Activation(options.activation, Linear(parameter, prefix + ".intermediate.dense", x));
    wide = dropout(Linear(parameter, prefix + ".output.dense", wide));
    x = Boundary(Normalise(parameter, prefix + ".output.LayerNorm", x + wide, kBertEpsilon));
  }

  const std::string head = "cls.predictions.";
  x = Activation(options.activation, Linear(parameter, head + "transform.dense", x));
  x = Normalise(parameter, head + "transform.LayerNorm", x, kBertEpsilon);
  const at::Tensor decoder = parameter(
      options.tie_embeddings ? embeddings + "word_embeddings.weight" : head + "decoder.weight");
  return at::linear(x, decoder, parameter(head + "bias").to(x.scalar_type()));
}

at::Tensor Mlp(const ModelOptions& options, Leaves& parameter, const at::Tensor& tokens,
               const Draws& draws) {
  at::Tensor x = Boundary(at::embedding(parameter("embedding.weight"), tokens));
  for (int block = 0; block < options.layers; ++block) {
    LayerDraws dropout(draws, 1 + block);
    const at::Tensor wide = Linear(parameter, absl::StrCat("hidden.", block), x);
    x = Boundary(dropout(Activation(options.activation, wide)));
  }
  return Linear(parameter, "output", x);
}

}  // namespace

at::Tensor Leaves::operator()(const std::string& name) {
  const auto found = parameters_.find(name);
  if (found == parameters_.end()) throw std::invalid_argument("no parameter " + name);
  const at::Tensor& exact = found->second;
  at::Tensor leaf = exact.detach();
  if (exact.dim() >= 2 || rounds_vectors_) leaf = leaf.to(computed_);
  leaf.requires_grad_();
  uses.emplace_back(name, leaf);
  return leaf;
}

at::Tensor Logits(const ModelOptions& options, Leaves& parameter, const at::Tensor& tokens,
                  const Draws& draws) {
  if (options.kind == "gpt") return Gpt(options, parameter, tokens, draws);
  if (options.kind == "bert") return Bert(options, parameter, tokens, draws);
  if (options.kind == "mlp") return Mlp(options, parameter, tokens, draws);
  throw std::invalid_argument("the reference knows no model " + options.kind);
}

}  // namespace siphon::reference
