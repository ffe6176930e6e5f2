#ifndef SIPHON_TESTS_LAUNCH_RUN_SMALL_JOB_H_
#define SIPHON_TESTS_LAUNCH_RUN_SMALL_JOB_H_

#include <string>
#include <vector>

#include "launch/config/job_config.h"
#include "planner/model_spec.h"

namespace siphon {

// A job that takes a moment on one worker: `kind` with 8 layers, so that 8 stages have one each, on
// synthetic data; 6 steps of 4 microbatches, dropout, warm-up, clipping that is active, checkpoints
// after steps 3 and 6 in `directory`.
JobConfig SmallJob(const std::string& kind, const std::string& directory);

// A model of one's own (model.kind mine) for synthetic data: six numbers to one of three classes.
ModelSpec ClassifierOf(std::vector<LayerSpec> layers);

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_RUN_SMALL_JOB_H_
