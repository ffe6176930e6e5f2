#ifndef SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_INFO_H_
#define SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_INFO_H_

#include <cstdint>
#include <string>

#include "pipeline/loss_scale.h"

namespace siphon {

// The scalars of a checkpoint (siphon.json). Random state is all in `seed` and `step`: every draw
// is keyed.
struct CheckpointInfo {
  int64_t step = 0;              // training steps done
  int64_t samples_consumed = 0;  // data position
  int64_t seed = 0;
  int64_t threads_per_worker = 1;
  std::string optimizer;
  // What was computed in (train.precision); parameters are stored in float32 whatever it is.
  std::string precision = "fp32";
  LossScale loss_scale;                          // fp16: for the next step
  std::string accumulation_order = "ascending";  // of microbatches
  std::string data_fingerprint;
  std::string tokenizer;
  std::string job_text;  // the job file in effect, from which `siphon generate` rebuilds the model
  std::string plan_text;
  friend bool operator==(const CheckpointInfo&, const CheckpointInfo&) = default;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_INFO_H_
