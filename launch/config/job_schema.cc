#include "launch/config/job_schema.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/config/config_values.h"
#include "launch/config/value_rules.h"

namespace siphon {
namespace {

// Counts of stages, workers and threads become `int` further on; no machine has more.
constexpr int64_t kMostWorkers = 4096;
// Layers are listed one by one before anything can refuse them for their size.
constexpr int64_t kMostLayers = 100'000;
// A step of more is refused as a whole.
constexpr int64_t kMostMicrobatches = 1 << 20;
// Far beyond any training; the order of an epoch is a permutation of at most 2^62.
constexpr int64_t kMostSamples = int64_t{1} << 40;

std::string TypeAndRule(std::string type, const std::string& rule) {
  return rule.empty() ? type : absl::StrCat(type, type.empty() ? "" : ", ", rule);
}

// Text with a rule is one of some words: the words say it all.
template <typename T>
std::string TypeFor(const std::string& rule) {
  if (std::is_same_v<T, std::string> && !rule.empty()) return "";
  return std::string(TypeName(T()));
}

// `member` gives the key's member of a job, const or not.
template <typename Member, typename Rule>
JobKey MakeKey(std::string section, std::string key, Member member, Rule rule,
               std::string meaning) {
  using T = std::decay_t<decltype(member(std::declval<JobConfig&>()))>;
  JobKey row{std::move(section), std::move(key), std::move(meaning)};
  row.is_text = std::is_same_v<T, std::string>;
  row.values = [rule](const KnownNames& known) {
    const std::string words = rule.Words(known);
    return TypeAndRule(TypeFor<T>(words), words);
  };
  row.read = [member, rule](const ConfigNode& node, const KnownNames& known, JobConfig& job) {
    T value{};
    SIPHON_RETURN_IF_ERROR(ReadValue(node, value));
    SIPHON_RETURN_IF_ERROR(rule.Check(value, known));
    member(job) = std::move(value);
    return absl::OkStatus();
  };
  row.write = [member](const JobConfig& job) { return WriteValue(member(job)); };
  return row;
}

// pipeline.partition is a method's name or a list of numbers: two members, one of them in use.
JobKey PartitionKey() {
  const Registered method{&KnownNames::partition_methods};
  const Range<int64_t> layers = AtLeast(int64_t{1});
  JobKey row{"pipeline", "partition",
             "how layers are cut into stages: a method, or the layers of each stage ([3, 2, 3])"};
  row.values = [method](const KnownNames& known) {
    const std::string names = method.Words(known);
    return absl::StrCat(names.empty() ? "method" : names, ", or list of whole numbers");
  };
  row.read = [method, layers](const ConfigNode& node, const KnownNames& known, JobConfig& job) {
    std::string name;
    std::vector<int64_t> list;
    if (node.kind == ConfigNode::Kind::kList) {
      SIPHON_RETURN_IF_ERROR(ReadValue(node, list));
      SIPHON_RETURN_IF_ERROR(layers.Check(list, known));
      if (list.empty()) {
        return absl::InvalidArgumentError("is an empty list; write the layers of each stage");
      }
    } else {
      SIPHON_RETURN_IF_ERROR(ReadValue(node, name));
      SIPHON_RETURN_IF_ERROR(method.Check(name, known));
    }
    job.pipeline.partition = std::move(name);
    job.pipeline.partition_layers = std::move(list);
    return absl::OkStatus();
  };
  row.write = [](const JobConfig& job) {
    const PipelineConfig& pipeline = job.pipeline;
    return pipeline.partition.empty() ? WriteValue(pipeline.partition_layers)
                                      : WriteValue(pipeline.partition);
  };
  return row;
}

// A path, or none: an override takes back the file that a job file names.
JobKey PlanKey() {
  JobKey row = MakeKey(
      "memory", "plan", [](auto& job) -> auto& { return job.memory.plan; }, AnyValue(),
      "a plan file to follow instead (siphon plan --output, or a run's plan.txt): what moves where "
      "and when; it must be of this job, and is not planned again; none: the job is planned");
  row.read = [read = row.read](const ConfigNode& node, const KnownNames& known, JobConfig& job) {
    SIPHON_RETURN_IF_ERROR(read(node, known, job));
    if (job.memory.plan == "none") job.memory.plan.clear();
    return absl::OkStatus();
  };
  return row;
}

#define KEY(section, key, rule, meaning) \
  MakeKey(                               \
      #section, #key, [](auto& job) -> auto& { return job.section.key; }, rule, meaning)

// clang-format off: one row a key
std::vector<JobKey> ModelKeys() {
  return {
      KEY(model, kind,
          (Registered{&KnownNames::model_kinds,
                      {"gpt", "bert", "mlp", "vgg16", "resnet50", "torchscript", "plugin"}}),
          "what is trained"),
      KEY(model, layers, Between(1, kMostLayers), "blocks of the model"),
      KEY(model, hidden, AtLeast(int64_t{1}), "width"),
      KEY(model, heads, AtLeast(int64_t{1}), "attention heads; divides hidden"),
      KEY(model, vocabulary, AtLeast(int64_t{0}),
          "different ids or classes; 0: as many as the data needs"),
      KEY(model, dropout, Fraction(), "probability of dropping an activation; 0: off"),
      KEY(model, tie_embeddings, AnyValue(),
          "output layer and input embedding share their weights"),
      KEY(model, flash_attention, AnyValue(),
          "attention without the matrix of scores where it can be: without dropout, and on CUDA "
          "with heads of a multiple of 8 numbers, 256 at most, in fp32 of a multiple of 32 tokens"),
      KEY(model, activation, (OneOf{{"gelu_new", "gelu", "relu"}}),
          "default: gelu_new for gpt, gelu for bert, relu for mlp"),
      KEY(model, library, AnyValue(), "model.kind plugin: the shared object"),
      KEY(model, init_from, AnyValue(), "initial weights: a safetensors file or folder"),
  };
}

std::vector<JobKey> DataKeys() {
  return {
      KEY(data, kind, (Registered{&KnownNames::data_kinds, {"text", "tokens", "synthetic"}}),
          "what the samples are made of"),
      KEY(data, path, AnyValue(),
          "text: any file; tokens: Megatron's .bin and .idx, with or without the suffix"),
      KEY(data, tokenizer, (OneOf{{"bytes"}}), "how text becomes ids"),
      KEY(data, sequence_length, AtLeast(int64_t{1}), "tokens a sequence"),
      KEY(data, validation_fraction, Fraction(),
          "the last part of the data, never trained on; 0: none"),
      KEY(data, samples, Between(int64_t{1}, kMostSamples), "data.kind synthetic: samples in all"),
  };
}

std::vector<JobKey> TrainKeys() {
  return {
      KEY(train, steps, AtLeast(int64_t{0}), "optimizer steps in all"),
      KEY(train, global_batch, AtLeast(int64_t{1}), "sequences a step"),
      KEY(train, microbatch, AtLeast(int64_t{1}),
          "sequences that pass the pipeline together; divides global_batch"),
      KEY(train, optimizer, (Registered{&KnownNames::optimizers, {"adamw", "adam", "sgd"}}),
          "update rule"),
      KEY(train, learning_rate, AtLeast(0.0), "highest learning rate"),
      KEY(train, schedule, (OneOf{{"cosine", "linear", "constant"}}),
          "learning rate after warm-up"),
      KEY(train, warmup_steps, AtLeast(int64_t{0}),
          "steps over which the learning rate rises from 0"),
      KEY(train, final_learning_rate_fraction, Between(0.0, 1.0),
          "where cosine and linear end, of learning_rate"),
      KEY(train, weight_decay, AtLeast(0.0), "on matrices only; 0: off"),
      KEY(train, beta1, Fraction(), "adam, adamw: decay of the first moment"),
      KEY(train, beta2, Fraction(), "adam, adamw: decay of the second moment"),
      KEY(train, momentum, Fraction(), "sgd; 0: off"),
      KEY(train, clip_norm, AtLeast(0.0),
          "largest norm of all gradients together, for which all workers wait; 0: off"),
      KEY(train, precision, (OneOf{{"fp32", "bf16", "fp16"}}),
          "of weights and activations; sums, moments and master weights are fp32"),
      KEY(train, seed, AtLeast(int64_t{0}), "of initial weights, data order and dropout"),
      KEY(train, deterministic, AnyValue(),
          "refuse layers whose results may differ from run to run; bitwise equality needs it"),
      KEY(train, validate_every, AtLeast(int64_t{0}),
          "steps between validations; 0: only after the last"),
      KEY(train, validation_batches, AtLeast(int64_t{0}),
          "global batches a validation; 0: the whole split"),
  };
}

std::vector<JobKey> PipelineKeys() {
  return {
      KEY(pipeline, stages, Between(1, kMostWorkers),
          "parts of the model; workers = stages / chunks x replicas"),
      KEY(pipeline, chunks, Between(0, kMostWorkers), "stages a worker; 0: the schedule's own"),
      KEY(pipeline, replicas, NotBuiltYet<int64_t>{1}, "copies of the pipeline"),
      KEY(pipeline, schedule, Registered{&KnownNames::schedules},
          "order of forward and backward passes"),
      KEY(pipeline, schedule_file, AnyValue(),
          "schedule csv: a file in a format of torch.distributed.pipelining"),
      KEY(pipeline, in_flight, Between(0, kMostMicrobatches),
          "schedule dapple: microbatches alive on a worker; 0: as many as its warm-up wants"),
      KEY(pipeline, warm_up, (OneOf{{"a", "b"}}),
          "schedule dapple, forwards before stage s of P goes backward: a: P - s, b: 2(P - s) - 1"),
      KEY(pipeline, depth, (Between(int64_t{1}, kMostMicrobatches)),
          "schedule pipedream: minibatches in flight of each stage; default: P - s"),
      KEY(pipeline, forward_pack, Between(1, kMostWorkers),
          "schedules harmony_*: stages that go forward as one"),
      KEY(pipeline, backward_pack, Between(1, kMostWorkers),
          "schedules harmony_*: stages that go backward as one"),
      KEY(pipeline, microbatch_group, Between(0, kMostMicrobatches),
          "schedules harmony_*: microbatches through a pack before the next, 0: all; "
          "pipedream_2bw: microbatches an update, 0: the schedule's own"),
      KEY(pipeline, backward_group, Between(0, kMostMicrobatches),
          "schedules harmony_*: microbatches through a pack before the next, backward; 0: as "
          "microbatch_group says"),
      PartitionKey(),
      KEY(pipeline, backend, (OneOf{{"cpu", "cuda"}}), "what workers compute on"),
      KEY(pipeline, threads_per_worker, Between(1, kMostWorkers),
          "LibTorch's threads; another number gives other bits"),
      KEY(pipeline, transport, (OneOf{{"auto", "shared_memory", "mpi", "nccl"}}),
          "auto: shared memory within a host, MPI messages across; between CUDA devices nccl"),
      KEY(pipeline, profile, AnyValue(),
          "what layers cost, a file that siphon profile wrote; plan and prediction use it"),
  };
}

std::vector<JobKey> MachineKeys() {
  return {
      KEY(launch, heartbeat_timeout, Range<Nanos>{Nanos(1)},
          "a worker silent for so long counts as lost"),
      KEY(launch, stall_timeout, Range<Nanos>{Nanos(0)},
          "a worker that holds up all others for so long counts as lost, too, though it is not "
          "silent; 0s: never"),
      KEY(launch, mpirun_options, AnyValue(), "more options for mpirun"),
      KEY(memory, strategy, (Registered{&KnownNames::memory_strategies, {"harmony"}}),
          "what happens to tensors between their uses where memory.capacity is too small for all; "
          "auto chooses tensor by tensor"),
      PlanKey(),
      KEY(memory, capacity, AnyValue(),
          "tensors and buffers a worker may hold: one size for all, or one each; default: no "
          "limit"),
      KEY(memory, host_capacity, AnyValue(), "host memory for swapping; 0B: no limit"),
      KEY(memory, nvme_directory, AnyValue(),
          "where a drive takes what is swapped, in files without names; auto uses drives, and "
          "optimizer steps on the host fall back on one, only where this is given; default for "
          "nvme_swap: output.directory"),
      KEY(memory, nvme_capacity, AnyValue(),
          "of that drive for all workers together; 0B: what is free there, less 64MiB"),
      KEY(memory, reserve, AnyValue(),
          "part of the capacity to keep free, and of the memory of devices that only lend"),
      KEY(memory, chunk, AnyValue(),
          "tensors are moved in pieces of so much, so that others get their turn in between; at "
          "least 4KiB"),
      KEY(memory, replan, AnyValue(),
          "plan once more by what the first steps took, and follow that plan where it gains more "
          "than 5 %"),
      KEY(memory, known_plans, AnyValue(),
          "keep plans (in ~/.cache/siphon), and follow the one that was found when such a job was "
          "started before, in place of a search"),
      KEY(memory, check, (OneOf{{"off", "cheap", "full"}}),
          "of tensors that are moved; cheap: all are back at a step's end; full: bit by bit as "
          "they "
          "were, by checksums"),
      KEY(topology, source, (OneOf{{"preset", "file", "probe"}}),
          "where links and their rates come from; probe: this machine's CUDA devices, measured "
          "once and kept, as siphon topology --probe does"),
      KEY(topology, name, AnyValue(),
          "a preset (siphon topology lists them), or the path of a file like them, or of what "
          "nvidia-smi topo -m printed or NCCL_TOPO_DUMP_FILE has"),
      KEY(topology, throttle, NoneOrScale(),
          "hold messages and moved tensors to the rates of the topology's links times this scale"),
      KEY(topology, map_score, (OneOf{{"step_time", "swap_time"}}),
          "what maps of workers to devices are scored by (mpress has a score of its own): the "
          "simulated step, or the longest swap to another device, which maps of strategies that "
          "use no other devices do not change"),
      KEY(topology, servers, Between(1, kMostWorkers),
          "how many of that server there are, or of machines with CPU workers; workers are started "
          "on all of them by mpirun, tensors move within each"),
      KEY(topology, network_rate, AnyValue(),
          "of the network between servers: out of one, and into one, all its adapters together"),
      KEY(topology, network_latency, AnyValue(), "of a message between servers"),
  };
}

std::vector<JobKey> FileKeys() {
  return {
      KEY(checkpoint, directory, AnyValue(), "default: checkpoints in output.directory"),
      KEY(checkpoint, every_steps, AtLeast(int64_t{0}),
          "steps between checkpoints; 0: none on the way"),
      KEY(checkpoint, keep, AtLeast(int64_t{0}), "newest checkpoints kept; 0: all"),
      KEY(checkpoint, resume, AnyValue(),
          "auto: the newest complete one; none; or a checkpoint's path"),
      KEY(output, directory, AnyValue(), "where everything that a run writes goes"),
      KEY(output, metrics, AnyValue(), "metrics.jsonl, one line a step"),
      KEY(output, trace, AnyValue(), "measured.trace.json, for Perfetto"),
      KEY(output, report, AnyValue(), "report.html"),
      KEY(output, log_level, (OneOf{{"trace", "debug", "info", "warning", "error"}}),
          "least important messages shown"),
  };
}
// clang-format on

#undef KEY

std::vector<JobKey> AllKeys() {
  std::vector<JobKey> all;
  for (auto* keys : {ModelKeys, DataKeys, TrainKeys, PipelineKeys, MachineKeys, FileKeys}) {
    for (JobKey& key : keys()) all.push_back(std::move(key));
  }
  return all;
}

}  // namespace

const std::vector<JobKey>& JobSchema() {
  // Never destroyed: threads may still read a job while the process ends.
  static const auto* const kSchema = new std::vector<JobKey>(AllKeys());
  return *kSchema;
}

}  // namespace siphon
