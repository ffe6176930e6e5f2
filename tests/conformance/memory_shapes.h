#ifndef SIPHON_TESTS_CONFORMANCE_MEMORY_SHAPES_H_
#define SIPHON_TESTS_CONFORMANCE_MEMORY_SHAPES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "planner/memory/memory_estimate.h"
#include "planner/model_spec.h"
#include "planner/training_plan.h"
#include "swap/memory_ledger.h"

namespace siphon {

// What memory predictions are compared on: fourteen shapes of models under every schedule that runs
// live, and what the books of each worker count there.

struct MemoryShape {
  std::string name;
  ModelOptions model;
  int workers = 2;
  int microbatches = 4;
  int microbatch = 2;
  std::string optimizer = "adamw";
  int moments = 2;
  std::string precision = "fp32";
};
Precision PrecisionOf(const MemoryShape& shape);
ModelSpec ModelOf(const MemoryShape& shape);  // in its precision

// Weights weigh most in some, activations in others, logits or attention scores in yet others.
std::vector<MemoryShape> MemoryShapes();

// Of each model, on one worker and on two: microbatches of less than 16 tokens, whose norms save
// less than a cache line, and many of them.
std::vector<MemoryShape> SmallMemoryShapes();

// The shape as a job on one worker, with one microbatch a step.
JobConfig JobOf(const MemoryShape& shape);

struct MemoryCase {
  MemoryShape shape;
  std::string schedule;
};
// The schedule under four or five of the shapes, others than the schedules beside it in the
// registry, so that every shape has its turn; with SIPHON_TEST_ALL=1 under all of them. A schedule
// on replicas is taken with one.
std::vector<MemoryCase> MemoryCases(const std::string& schedule);

// The case as a plan, lowered and validated.
absl::StatusOr<TrainingPlan> PlanOf(const MemoryCase& one, const ModelSpec& model);

// Bytes that one worker held at its fullest moment of the second training step, by its books.
struct MeasuredPeak {
  Bytes total;
  MemoryByKind by_kind;  // each at its own fullest moment
};
// What messages between workers go through.
enum class MessagePath {
  kRings,       // with room for a whole step
  kRendezvous,  // no room: a sender holds what it sent until the receiver asks for it
};
// Trains. Needs InstallCountingAllocator.
absl::StatusOr<std::vector<MeasuredPeak>> MeasurePeaks(const MemoryCase& one,
                                                       const ModelSpec& model,
                                                       const TrainingPlan& plan,
                                                       MessagePath messages = MessagePath::kRings);

// The error of a prediction in percent; with SIPHON_TEST_PRINT in the environment a line about it.
double ErrorInPercent(const MemoryCase& one, size_t worker, Bytes predicted, Bytes measured);

}  // namespace siphon

#endif  // SIPHON_TESTS_CONFORMANCE_MEMORY_SHAPES_H_
