#ifndef SIPHON_PLANNER_MEMORY_MEMORY_ESTIMATE_H_
#define SIPHON_PLANNER_MEMORY_MEMORY_ESTIMATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/ids.h"
#include "planner/memory/memory_kind.h"
#include "planner/model_profile.h"
#include "planner/model_spec.h"
#include "planner/schedule.h"
#include "planner/stage_partition.h"

namespace siphon {

// In which numbers a job computes. The 16-bit ones keep float32 master weights beside the moments.
enum class Precision { kFloat32, kBFloat16, kFloat16 };

// "fp32", "bf16", "fp16", as in the job file. Errors: NotFound with the known ones.
absl::StatusOr<Precision> ParsePrecision(absl::string_view name);
// Of what is saved and sent; 4 or 2.
int64_t ComputedBytes(Precision precision);

// What vectors (biases, and weights of norms) are held in beside 16-bit matrices.
enum class HeldVectors {
  kFloat32,   // as LibTorch's norms want them on a CPU; they are a thousandth of all
  kComputed,  // on CUDA, whose norms take weights of their input's type alone
};

// Which kernels a processor has for products of 16-bit matrices, and what they take for themselves
// (matrix_scratch.h).
enum class MatrixKernels {
  kPairs,  // AVX512_BF16 at best; fp16 is widened tensor by tensor
  kTiles,  // AMX for bf16, and AVX512_FP16, whose products widen fp16 by blocks
};

// What becomes of a tensor whose SEND has begun.
enum class SentTensors {
  kUntilReceived,  // its receiver copies it: held until the next compute action is done
  kCopied,         // the message is in a ring, so that the tensor goes at once
};

// Everything that a memory model is told about a job. What is pointed to outlives the call.
struct MemoryInputs {
  const ModelSpec* model = nullptr;
  const StagePartition* partition = nullptr;
  const Schedule* schedule = nullptr;  // of training; with or without communication
  int64_t microbatch = 1;              // samples
  Precision precision = Precision::kFloat32;
  HeldVectors vectors = HeldVectors::kFloat32;
  MatrixKernels matrix_kernels = MatrixKernels::kPairs;
  int moments = 2;                   // that the optimizer keeps of each parameter
  std::vector<Bytes> communication;  // of each worker; empty: none
  SentTensors sent = SentTensors::kUntilReceived;
  const ModelProfile* profile = nullptr;  // measured at this microbatch; wins over calculated sizes
};

// Where the activations of a layer were taken from, best first.
enum class MemorySource { kMeasured, kSavedTensors, kPublishedFormula, kUnknown };
// "measured profile", "saved tensors", "published formula", "unknown".
absl::string_view MemorySourceName(MemorySource source);

struct LayerUse {
  std::string name;
  Bytes parameters;  // as stored, without gradients and optimizer state
  std::vector<SavedTensor>
      saved;  // of one microbatch; what another layer saved already is left out
  MemorySource source = MemorySource::kUnknown;
  friend bool operator==(const LayerUse&, const LayerUse&) = default;
};

struct StageMemory {
  StageId stage;
  WorkerId worker;
  MemoryByKind memory;        // at the worker's fullest moment
  int live_microbatches = 0;  // the most that keep activations at once
  int weight_versions = 1;
  std::vector<LayerUse> layers;
  friend bool operator==(const StageMemory&, const StageMemory&) = default;
};

// Bytes of a training step at each worker's fullest moment.
struct MemoryEstimate {
  std::vector<StageMemory> stages;    // by stage
  std::vector<MemoryByKind> workers;  // by worker: sums over its stages
  friend bool operator==(const MemoryEstimate&, const MemoryEstimate&) = default;
};

Bytes TotalOf(const MemoryEstimate& estimate);
Bytes LargestWorker(const MemoryEstimate& estimate);
Bytes SmallestWorker(const MemoryEstimate& estimate);
// Names of layers whose activations are in no source.
std::vector<std::string> UnknownLayers(const MemoryEstimate& estimate);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_MEMORY_ESTIMATE_H_
