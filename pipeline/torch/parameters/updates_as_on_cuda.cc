#include "pipeline/torch/parameters/updates_as_on_cuda.h"

#include <cmath>

#include "planner/status.h"

// Compiled with -ffp-contract=off: a multiply-add is fused where it says so, and nowhere else.

namespace siphon {
namespace {

constexpr int64_t kPowersAtOnce = 256;
constexpr int64_t kGrain = 16'384;  // values a thread has at least

// A thread of the kernel has four values at a time, and adds the decay of an L2 term to the first
// of them by a product and a sum, to the others fused. Where it has four that lie beside each
// other, and where it has those of four rounds of 512 threads, as a rest of values makes it: the
// first of them are those whose number, shifted so far, is a multiple of 4.
constexpr int kSideBySide = 0, kInRounds = 9;
int ShiftOfFirsts(int64_t count) { return count % 4 == 0 ? kSideBySide : kInRounds; }

// What is the same for all values of a parameter.
struct AdamScalars {
  float beta1, beta2, epsilon, weight_decay, decay, step_size, correction2;
  int shift;  // ShiftOfFirsts
};
struct SgdScalars {
  float learning_rate, momentum, weight_decay;
};

template <bool kDecoupled, bool kDecays>
[[gnu::always_inline]] inline void Adam(float* __restrict parameter,
                                        const float* __restrict gradient, float* __restrict first,
                                        float* __restrict second, int64_t begin, int64_t end,
                                        const AdamScalars s) {
  for (int64_t at = begin; at < end; ++at) {
    float value = parameter[at], g = gradient[at];
    if (kDecays && kDecoupled) value = std::fma(value, -s.decay, value);
    if (kDecays && !kDecoupled) {
      const float in_two = value * s.weight_decay + g;
      const float fused = std::fma(value, s.weight_decay, g);
      g = ((at >> s.shift) & 3) == 0 ? in_two : fused;
    }
    const float square = g * g;
    const float m = std::fma(s.beta1, first[at], std::fma(-s.beta1, g, g));
    const float v = std::fma(s.beta2, second[at], std::fma(-s.beta2, square, square));
    const float root = std::sqrt(v) / s.correction2 + s.epsilon;
    first[at] = m;
    second[at] = v;
    parameter[at] = value - s.step_size * m / root;
  }
}

template <bool kMomentum, bool kDecays>
[[gnu::always_inline]] inline void Sgd(float* __restrict parameter,
                                       const float* __restrict gradient, float* __restrict buffer,
                                       int64_t begin, int64_t end, const SgdScalars s) {
  for (int64_t at = begin; at < end; ++at) {
    float g = gradient[at];
    if (kDecays) g = std::fma(parameter[at], s.weight_decay, g);
    if (kMomentum) g = buffer[at] = buffer[at] * s.momentum + g;
    parameter[at] = std::fma(g, -s.learning_rate, parameter[at]);
  }
}

// Each loop twice: for processors with fused multiply-adds, which give the same bits as the
// library's function of that name, many times faster; and for all others.
#if defined(__x86_64__)
#define SIPHON_FUSED [[gnu::target("avx2,fma")]]
bool HasFused() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
#define SIPHON_FUSED
bool HasFused() { return true; }
#endif

template <bool kDecoupled, bool kDecays>
SIPHON_FUSED void FusedAdam(float* parameter, const float* gradient, float* first, float* second,
                            int64_t begin, int64_t end, const AdamScalars& s) {
  Adam<kDecoupled, kDecays>(parameter, gradient, first, second, begin, end, s);
}
template <bool kDecoupled, bool kDecays>
void PlainAdam(float* parameter, const float* gradient, float* first, float* second, int64_t begin,
               int64_t end, const AdamScalars& s) {
  Adam<kDecoupled, kDecays>(parameter, gradient, first, second, begin, end, s);
}
template <bool kMomentum, bool kDecays>
SIPHON_FUSED void FusedSgd(float* parameter, const float* gradient, float* buffer, int64_t begin,
                           int64_t end, const SgdScalars& s) {
  Sgd<kMomentum, kDecays>(parameter, gradient, buffer, begin, end, s);
}
template <bool kMomentum, bool kDecays>
void PlainSgd(float* parameter, const float* gradient, float* buffer, int64_t begin, int64_t end,
              const SgdScalars& s) {
  Sgd<kMomentum, kDecays>(parameter, gradient, buffer, begin, end, s);
}

template <bool kDecoupled, bool kDecays>
void RunAdam(const AdamOnHost& update, const AdamScalars& scalars) {
  const auto part = HasFused() ? FusedAdam<kDecoupled, kDecays> : PlainAdam<kDecoupled, kDecays>;
  float* const parameter = update.parameter.mutable_data_ptr<float>();
  const float* const gradient = update.gradient.const_data_ptr<float>();
  float* const first = update.first_moment.mutable_data_ptr<float>();
  float* const second = update.second_moment.mutable_data_ptr<float>();
  at::parallel_for(0, update.parameter.numel(), kGrain, [&](int64_t begin, int64_t end) {
    part(parameter, gradient, first, second, begin, end, scalars);
  });
}

template <bool kMomentum, bool kDecays>
void RunSgd(const SgdOnHost& update, const SgdScalars& scalars) {
  const auto part = HasFused() ? FusedSgd<kMomentum, kDecays> : PlainSgd<kMomentum, kDecays>;
  float* const parameter = update.parameter.mutable_data_ptr<float>();
  const float* const gradient = update.gradient.const_data_ptr<float>();
  float* const buffer = kMomentum ? update.momentum_buffer.mutable_data_ptr<float>() : nullptr;
  at::parallel_for(0, update.parameter.numel(), kGrain, [&](int64_t begin, int64_t end) {
    part(parameter, gradient, buffer, begin, end, scalars);
  });
}

}  // namespace

float PowersOnDevice::Of(double beta, int64_t update) {
  SIPHON_CHECK(update > 0, "updates are counted from 1");
  if (tables_.empty() || update < first_ || update >= first_ + kPowersAtOnce) {
    tables_.clear();
    first_ = update;
  }
  const auto found = tables_.find(beta);
  if (found != tables_.end()) return found->second.const_data_ptr<float>()[update - first_];
  const at::TensorOptions there = at::TensorOptions(at::kFloat).device(device_);
  const at::Tensor updates = at::arange(first_, first_ + kPowersAtOnce, there);
  const at::Tensor powers =
      at::pow(at::full({kPowersAtOnce}, static_cast<float>(beta), there), updates).to(at::kCPU);
  return tables_.emplace(beta, powers).first->second.const_data_ptr<float>()[update - first_];
}

void UpdateAsOnCuda(const AdamOnHost& update) {
  const auto rounded = [](double value) { return static_cast<float>(value); };
  const float learning_rate = rounded(update.learning_rate);
  const AdamScalars scalars = {
      .beta1 = rounded(update.beta1),
      .beta2 = rounded(update.beta2),
      .epsilon = rounded(update.epsilon),
      .weight_decay = rounded(update.weight_decay),
      .decay = learning_rate * rounded(update.weight_decay),
      .step_size = learning_rate / (1.0f - update.power1),
      .correction2 = std::sqrt(1.0f - update.power2),
      .shift = ShiftOfFirsts(update.parameter.numel()),
  };
  const bool decays = scalars.weight_decay != 0;
  const auto run = update.decoupled ? (decays ? RunAdam<true, true> : RunAdam<true, false>)
                                    : (decays ? RunAdam<false, true> : RunAdam<false, false>);
  run(update, scalars);
}

void UpdateAsOnCuda(const SgdOnHost& update) {
  const SgdScalars scalars = {.learning_rate = static_cast<float>(update.learning_rate),
                              .momentum = static_cast<float>(update.momentum),
                              .weight_decay = static_cast<float>(update.weight_decay)};
  const bool decays = scalars.weight_decay != 0;
  const auto run = update.momentum_buffer.defined()
                       ? (decays ? RunSgd<true, true> : RunSgd<true, false>)
                       : (decays ? RunSgd<false, true> : RunSgd<false, false>);
  run(update, scalars);
}

}  // namespace siphon
