#ifndef SIPHON_TESTS_CONFORMANCE_CONFORMANCE_H_
#define SIPHON_TESTS_CONFORMANCE_CONFORMANCE_H_

#include <string>
#include <vector>

#include "planner/lowering/lower_memory_plan.h"
#include "planner/memory_plan.h"
#include "planner/model_spec.h"
#include "planner/schedule.h"
#include "planner/stage_partition.h"
#include "tests/support/pipeline_run.h"
#include "tests/support/reference_trainer.h"
#include "tests/support/token_batches.h"

namespace siphon {

// A training run described once, to be done by the reference and by pipelines.
struct Job {
  ModelOptions model;
  int microbatches = 4;
  int microbatch = 2;
  int steps = 5;
  uint64_t seed = 7;
  OptimizerOptions optimizer = {.name = "adamw", .weight_decay = 0.1};
  // Well below the gradient norms of the tiny models (about 1), so that every step is clipped.
  double clip_norm = 0.25;
  int threads = 1;
  Precision precision = Precision::kFloat32;
  float loss_scale = 0;  // the first step's; 0: none
  // Layers of a stage whose activations leave together; 0: all are kept.
  int leaving_run = 0;
  // Of layers whose saved tensors the model names only the first of these leave, each number of
  // them that can in turn. Runs are then of one layer.
  bool first_tensors = false;
  // Where those groups go, in turn; kPeerSwap striped over the devices of all other workers (a
  // worker that is alone has two lenders).
  std::vector<Placement> leaving = {Placement::kRecompute};
  // Where parameters, gradients and optimizer state are between their uses, in turn, in the same
  // runs (of one layer, where leaving_run is 0); empty: they stay.
  std::vector<Placement> state;
  WeightResidence residence = WeightResidence::kWholeActions;
  int stream_buffers = kMostStreamBuffers;  // of each stage
  // Where the optimizer steps of the stages are, in turn.
  std::vector<UpdatePlace> updates = {UpdatePlace::kDevice};
  SwapTiming timing;       // of all that leaves
  StateTimes state_times;  // of optimizer state
  // Of all layers, as in LowerMemoryOptions.
  int made_ahead = LowerMemoryOptions::kInBackward;
  int share = LowerMemoryOptions::kShares;
};

// What the reference makes of a job.
struct Expected {
  ModelSpec spec;
  TokenBatches batches;
  std::vector<double> learning_rates;
  std::vector<reference::StepResult> steps;
  std::vector<float> evaluation_losses;
  reference::NamedValues parameters, first_moments, second_moments;
};

// Runs on a thread of its own, so that its number of LibTorch threads is not left behind.
Expected RunReference(const Job& job, const reference::AccumulationOrders& accumulation = {});

// The orders in which the schedule adds up the gradients of each layer; empty where they ascend in
// all of them, which is one order for any partition.
reference::AccumulationOrders OrdersOf(const Schedule& schedule, const StagePartition& partition);

// Trains the same job as a pipeline and expects the same bits: losses of every microbatch and step,
// gradient norms, every parameter and moment, the losses of an evaluation; and the schedule's own
// peak of live microbatches.
void ExpectSameBits(const Job& job, const Expected& expected, const StagePartition& partition,
                    const Schedule& compute_only);

}  // namespace siphon

#endif  // SIPHON_TESTS_CONFORMANCE_CONFORMANCE_H_
