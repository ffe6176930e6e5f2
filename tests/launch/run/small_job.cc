#include "tests/launch/run/small_job.h"

#include <utility>

namespace siphon {

JobConfig SmallJob(const std::string& kind, const std::string& directory) {
  JobConfig job;
  job.model.kind = kind;
  job.model.layers = 6;
  job.model.hidden = 24;
  job.model.heads = 3;
  job.model.dropout = 0.1;
  job.data.kind = "synthetic";
  job.data.sequence_length = 12;
  job.data.samples = 64;
  job.data.validation_fraction = 0.25;
  job.train.steps = 6;
  job.train.global_batch = 8;
  job.train.microbatch = 2;
  job.train.learning_rate = 0.01;
  job.train.warmup_steps = 2;
  job.train.weight_decay = 0.1;
  job.train.clip_norm = 0.25;
  job.train.seed = 5;
  job.memory.check = "full";
  job.checkpoint.every_steps = 3;
  job.output.directory = directory;
  return job;
}

ModelSpec ClassifierOf(std::vector<LayerSpec> layers) {
  ModelSpec model;
  model.objective = Objective::kClassification;
  model.input = {DType::kFloat32, {6}};
  model.target = {DType::kInt64, {}};
  model.classes = 3;
  model.layers = std::move(layers);
  return model;
}

}  // namespace siphon
