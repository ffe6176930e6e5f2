// The optimizers that are one call of a fused LibTorch kernel.

#include "pipeline/torch/optimizers.h"

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

}  // namespace

const OptimizerTraits kAdamW = {TwoMoments, UpdateAdamW};
const OptimizerTraits kAdam = {TwoMoments, UpdateAdam};
const OptimizerTraits kSgd = {SgdMoments, UpdateSgd};

}  // namespace siphon
