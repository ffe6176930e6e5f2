#include "pipeline/torch/keyed_random.h"

#include <mutex>

#include "planner/keyed_hash.h"
#include "planner/status.h"

namespace siphon {
namespace {

// A generator of our own for each draw: LibTorch's global ones are shared by threads, and their
// state would depend on what was drawn before.
at::Generator GeneratorOf(uint64_t key, at::Device device) {
  if (device.is_cpu()) return at::detail::createCPUGenerator(FoldTo32(key));
  at::Generator generator = at::globalContext()
                                .getAcceleratorHooksInterface(device.type())
                                .getNewGenerator(device.index());
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(key);
  return generator;
}

}  // namespace

at::Tensor KeyedDropoutMask(uint64_t seed, int64_t step, int microbatch, int layer, int draw,
                            at::IntArrayRef shape, double probability, at::ScalarType type,
                            at::Device device) {
  SIPHON_CHECK(probability > 0 && probability < 1, "a mask needs a probability within (0, 1)");
  const uint64_t key =
      KeyedHash(RandomPurpose::kDropout,
                {seed, static_cast<uint64_t>(step), static_cast<uint64_t>(microbatch),
                 static_cast<uint64_t>(layer), static_cast<uint64_t>(draw)});
  const double kept = 1.0 - probability;
  return at::empty(shape, at::TensorOptions(type).device(device))
      .bernoulli_(kept, GeneratorOf(key, device))
      .div_(kept);
}

void FillInitialParameter(const ParameterSpec& spec, uint64_t seed, const at::Tensor& tensor) {
  switch (spec.initializer) {
    case Initializer::kZeros:
      tensor.zero_();
      return;
    case Initializer::kOnes:
      tensor.fill_(1.0);
      return;
    case Initializer::kNormal:
      break;
  }
  const uint64_t key = KeyedHash(RandomPurpose::kInitialWeight, seed, spec.name);
  tensor.normal_(0.0, spec.standard_deviation, GeneratorOf(key, at::kCPU));
}

at::Tensor InitialParameter(const ParameterSpec& spec, uint64_t seed) {
  at::Tensor tensor = at::empty(spec.shape, at::kFloat);
  FillInitialParameter(spec, seed, tensor);
  return tensor;
}

}  // namespace siphon
