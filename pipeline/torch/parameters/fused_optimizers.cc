// The optimizers that are one call of a fused LibTorch kernel, or of what has its bits on the host.

#include "pipeline/torch/parameters/optimizers.h"

namespace siphon {
namespace {

int TwoMoments(const OptimizerOptions&) { return 2; }

int SgdMoments(const OptimizerOptions& options) { return options.momentum == 0 ? 0 : 1; }

void UpdateAdamW(const OptimizerOptions& options, const ParameterUpdate& update) {
  at::_fused_adamw_({update.parameter}, {update.gradient}, {update.moments[0]}, {update.moments[1]},
                    /*max_exp_avg_sqs=*/{}, {update.update_count}, update.learning_rate,
                    options.beta1, options.beta2, update.weight_decay, options.epsilon,
                    /*amsgrad=*/false, /*maximize=*/false);
}

void UpdateAdam(const OptimizerOptions& options, const ParameterUpdate& update) {
  at::_fused_adam_({update.parameter}, {update.gradient}, {update.moments[0]}, {update.moments[1]},
                   /*max_exp_avg_sqs=*/{}, {update.update_count}, update.learning_rate,
                   options.beta1, options.beta2, update.weight_decay, options.epsilon,
                   /*amsgrad=*/false, /*maximize=*/false);
}

void UpdateSgd(const OptimizerOptions& options, const ParameterUpdate& update) {
  // A momentum that starts as zeros gives the first step's numbers too, so no step is special.
  at::_fused_sgd_({update.parameter}, {update.gradient}, update.moments, update.weight_decay,
                  options.momentum, update.learning_rate, /*dampening=*/0.0, /*nesterov=*/false,
                  /*maximize=*/false, /*is_first_step=*/false);
}

template <bool kDecoupled>
void UpdateAdamAsOnCuda(const OptimizerOptions& options, const ParameterUpdate& update,
                        PowersOnDevice& powers) {
  const auto count = static_cast<int64_t>(update.update_count.item<float>());
  UpdateAsOnCuda(AdamOnHost{.parameter = update.parameter,
                            .gradient = update.gradient,
                            .first_moment = update.moments[0],
                            .second_moment = update.moments[1],
                            .learning_rate = update.learning_rate,
                            .beta1 = options.beta1,
                            .beta2 = options.beta2,
                            .epsilon = options.epsilon,
                            .weight_decay = update.weight_decay,
                            .power1 = powers.Of(options.beta1, count),
                            .power2 = powers.Of(options.beta2, count),
                            .decoupled = kDecoupled});
}

void UpdateSgdAsOnCuda(const OptimizerOptions& options, const ParameterUpdate& update,
                       PowersOnDevice& /*powers*/) {
  UpdateAsOnCuda(
      SgdOnHost{.parameter = update.parameter,
                .gradient = update.gradient,
                .momentum_buffer = update.moments.empty() ? at::Tensor() : update.moments[0],
                .learning_rate = update.learning_rate,
                .momentum = options.momentum,
                .weight_decay = update.weight_decay});
}

}  // namespace

const OptimizerTraits kAdamW = {TwoMoments, UpdateAdamW, UpdateAdamAsOnCuda<true>};
const OptimizerTraits kAdam = {TwoMoments, UpdateAdam, UpdateAdamAsOnCuda<false>};
const OptimizerTraits kSgd = {SgdMoments, UpdateSgd, UpdateSgdAsOnCuda};

}  // namespace siphon
