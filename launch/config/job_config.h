#ifndef SIPHON_LAUNCH_CONFIG_JOB_CONFIG_H_
#define SIPHON_LAUNCH_CONFIG_JOB_CONFIG_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "planner/units.h"

namespace siphon {

// A job file as values. Each member is one key of its section, and its initialiser is the key's
// only default; the table in job_schema.cc gives each its type, range and one line of help. To add
// a key: a member here and a row there. Sizes of batches count sequences (samples).

struct ModelConfig {
  std::string kind = "gpt";
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  int64_t vocabulary = 0;  // 0: as many ids as the data needs
  double dropout = 0.0;
  bool tie_embeddings = true;
  bool flash_attention = true;
  std::string activation;  // empty: the kind's own
  std::string library;     // plugin: the shared object
  std::string init_from;   // safetensors folder or file with initial weights
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

struct DataConfig {
  std::string kind = "text";
  std::string path;
  std::string tokenizer = "bytes";
  int64_t sequence_length = 128;
  double validation_fraction = 0.05;
  int64_t samples = 1024;  // synthetic: how many there are
  friend bool operator==(const DataConfig&, const DataConfig&) = default;
};

struct TrainConfig {
  int64_t steps = 100;
  int64_t global_batch = 32;
  int64_t microbatch = 4;
  std::string optimizer = "adamw";
  double learning_rate = 3e-4;
  std::string schedule = "cosine";  // of the learning rate: cosine, linear, constant
  int64_t warmup_steps = 0;
  double final_learning_rate_fraction = 0.1;  // where cosine and linear end
  double weight_decay = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double momentum = 0.0;
  double clip_norm = 1.0;  // 0: off
  std::string precision = "fp32";
  int64_t seed = 1;
  bool deterministic = true;       // only algorithms that give the same bits every time
  int64_t validate_every = 0;      // steps; 0: only after the last
  int64_t validation_batches = 8;  // global batches a validation; 0: the whole split
  friend bool operator==(const TrainConfig&, const TrainConfig&) = default;
};

// Whether losses are scaled, so that a step whose gradients are not all numbers is skipped.
inline bool ScalesLoss(const TrainConfig& train) { return train.precision == "fp16"; }

struct PipelineConfig {
  int64_t stages = 1;
  int64_t chunks = 0;  // stages a worker; 0: the schedule's own
  int64_t replicas = 1;
  std::string schedule = "1f1b";
  std::string schedule_file;              // csv
  int64_t in_flight = 0;                  // dapple; 0: no limit
  std::string warm_up = "a";              // dapple: a, b
  std::vector<int64_t> depth;             // pipedream: of each stage; empty: the schedule's own
  int64_t forward_pack = 1;               // harmony: stages
  int64_t backward_pack = 1;              // harmony: stages
  int64_t microbatch_group = 0;           // harmony, pipedream_2bw; 0: the schedule's own
  int64_t backward_group = 0;             // harmony: microbatches; 0: microbatch_group
  std::string partition = "balanced";     // method; empty when explicit
  std::vector<int64_t> partition_layers;  // explicit: layers of each stage ("partition: [3, 2, 3]")
  std::string backend = "cpu";
  int64_t threads_per_worker = 1;
  std::string transport = "auto";  // shared memory within one host, MPI messages across
  std::string profile;             // of the layers; empty: none
  friend bool operator==(const PipelineConfig&, const PipelineConfig&) = default;
};

struct LaunchConfig {
  Nanos heartbeat_timeout = Nanos(20'000'000'000);
  Nanos stall_timeout = Nanos(1'800'000'000'000);  // 0: never
  std::vector<std::string> mpirun_options;
  friend bool operator==(const LaunchConfig&, const LaunchConfig&) = default;
};

struct MemoryConfig {
  std::string strategy = "auto";
  std::string plan;
  std::vector<Bytes> capacity;  // empty: no limit; one value for all workers, or one for each
  Bytes host_capacity;          // 0: no limit
  std::string nvme_directory;   // empty: only nvme_swap uses a drive, that of output.directory
  Bytes nvme_capacity;          // 0: what is free there
  Bytes reserve;
  Bytes chunk{8 << 20};         // of what is moved, at a time
  bool replan = true;           // once, by what the first steps took
  bool known_plans = true;      // are followed where the job was planned before
  std::string check = "cheap";  // of what is moved: off, cheap, full
  friend bool operator==(const MemoryConfig&, const MemoryConfig&) = default;
};

struct TopologyConfig {
  std::string source = "preset";
  std::string name;
  std::string throttle = "none";
  std::string map_score = "step_time";
  int64_t servers = 1;          // like that one
  BytesPerSecond network_rate;  // out of one of them, and into it; there if there are several
  Nanos network_latency{10'000};
  friend bool operator==(const TopologyConfig&, const TopologyConfig&) = default;
};

struct CheckpointConfig {
  std::string directory;  // empty: <output.directory>/checkpoints
  int64_t every_steps = 0;
  int64_t keep = 3;
  std::string resume = "none";  // auto, none, or a path
  friend bool operator==(const CheckpointConfig&, const CheckpointConfig&) = default;
};

struct OutputConfig {
  std::string directory = "runs/default";
  bool metrics = true;
  bool trace = true;
  bool report = true;
  std::string log_level = "info";
  friend bool operator==(const OutputConfig&, const OutputConfig&) = default;
};

struct JobConfig {
  ModelConfig model;
  DataConfig data;
  TrainConfig train;
  PipelineConfig pipeline;
  LaunchConfig launch;
  MemoryConfig memory;
  TopologyConfig topology;
  CheckpointConfig checkpoint;
  OutputConfig output;
  // Where each key that was given came from: "train.steps" -> "job.yaml:12:10" or "--set
  // train.steps".
  std::map<std::string, std::string> origins;

  // Equal values; where they came from does not count.
  friend bool operator==(const JobConfig& a, const JobConfig& b) {
    return a.model == b.model && a.data == b.data && a.train == b.train &&
           a.pipeline == b.pipeline && a.launch == b.launch && a.memory == b.memory &&
           a.topology == b.topology && a.checkpoint == b.checkpoint && a.output == b.output;
  }
};

// InvalidArgument "<origin of the key, or 'default'>: train.microbatch: <problem>", the key only
// once when its origin is "--set train.microbatch". For errors found after parsing.
absl::Status ConfigError(const JobConfig& job, absl::string_view key, absl::string_view problem);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_JOB_CONFIG_H_
