#include "launch/run/generate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/checkpoint/checkpoint.h"
#include "launch/config/load_job_config.h"
#include "launch/run/job/prepare_job.h"
#include "pipeline/torch/predictor.h"
#include "planner/keyed_hash.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int64_t kByteIds = 256;

// Passes on whole UTF-8 characters: a model of bytes makes them one byte at a time.
class Utf8Emitter {
 public:
  explicit Utf8Emitter(const std::function<void(absl::string_view)>& emit) : emit_(emit) {}
  void Add(char byte) {
    pending_.push_back(byte);
    if (pending_.size() >= Expected()) Flush();
  }
  void Flush() {
    if (!pending_.empty()) emit_(pending_);
    pending_.clear();
  }

 private:
  size_t Expected() const {
    const auto lead = static_cast<unsigned char>(pending_[0]);
    if (lead >= 0xF0) return 4;
    if (lead >= 0xE0) return 3;
    return lead >= 0xC0 ? 2 : 1;
  }
  const std::function<void(absl::string_view)>& emit_;
  std::string pending_;
};

absl::StatusOr<std::string> FindCheckpoint(const std::string& path) {
  if (std::filesystem::exists(path + "/siphon.json")) return path;
  // An output directory is what people have at hand.
  for (const std::string& directory : {path, path + "/checkpoints"}) {
    absl::StatusOr<std::string> newest = NewestCheckpoint(directory);
    if (!absl::IsNotFound(newest.status())) return newest;
  }
  return absl::NotFoundError(absl::StrCat("no complete checkpoint in '", path, "'"));
}

absl::StatusOr<std::unique_ptr<Predictor>> LoadPredictor(const Checkpoint& checkpoint,
                                                         const Model& model) {
  SIPHON_ASSIGN_OR_RETURN(auto predictor, Predictor::Make(model));
  std::vector<CheckpointTensor> tensors;
  for (const StateTensor& tensor : predictor->State()) {
    if (tensor.kind != StateTensor::Kind::kParameter) continue;
    tensors.push_back({.name = tensor.name, .spec = tensor.spec, .bytes = tensor.bytes});
  }
  SIPHON_RETURN_IF_ERROR(checkpoint.Read(tensors));
  return predictor;
}

}  // namespace

int64_t DrawToken(const std::vector<float>& logits, double temperature, int64_t top_k,
                  double uniform) {
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
  if (temperature <= 0) return order[0];
  if (top_k > 0 && top_k < static_cast<int64_t>(order.size())) order.resize(top_k);
  std::vector<double> weight;
  for (const int64_t id : order) {
    weight.push_back(std::exp((logits[id] - logits[order[0]]) / temperature));
  }
  double remaining = uniform * std::accumulate(weight.begin(), weight.end(), 0.0);
  for (size_t i = 0; i < order.size(); ++i) {
    remaining -= weight[i];
    if (remaining < 0) return order[i];
  }
  return order.back();
}

absl::Status Generate(const GenerateOptions& options,
                      const std::function<void(absl::string_view)>& emit) {
  if (!(options.temperature >= 0)) {  // nor is a NaN
    return absl::InvalidArgumentError(
        absl::StrCat("a temperature of ", options.temperature, "; it must be at least 0"));
  }
  SIPHON_ASSIGN_OR_RETURN(const std::string path, FindCheckpoint(options.checkpoint));
  SIPHON_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  SIPHON_ASSIGN_OR_RETURN(const JobConfig job, ParsePastJob(checkpoint.info().job_text,
                                                            absl::StrCat(path, " (its job)")));
  if (job.model.kind != "gpt" || job.data.kind != "text") {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' holds a ", job.model.kind, " trained on ", job.data.kind,
                     " data; only a gpt trained on text can continue a text"));
  }
  SIPHON_ASSIGN_OR_RETURN(const ModelOptions model_options, ResolveModelOptions(job));
  SIPHON_ASSIGN_OR_RETURN(const Model model, MakeConfiguredModel(job, model_options));
  SIPHON_ASSIGN_OR_RETURN(auto predictor, LoadPredictor(checkpoint, model));

  std::vector<int64_t> tokens;
  for (const char c : options.prompt) tokens.push_back(static_cast<unsigned char>(c));
  if (tokens.empty()) tokens.push_back('\n');
  KeyedGenerator random(KeyedHash(RandomPurpose::kSampling, {options.seed}));
  Utf8Emitter out(emit);
  for (int64_t made = 0; made < options.length; ++made) {
    const int64_t context = std::min<int64_t>(tokens.size(), model_options.sequence_length);
    SIPHON_ASSIGN_OR_RETURN(std::vector<float> logits,
                            predictor->NextTokenLogits(absl::MakeConstSpan(tokens).last(context)));
    logits.resize(std::min<size_t>(logits.size(), kByteIds));  // padding ids mean nothing
    tokens.push_back(DrawToken(logits, options.temperature, options.top_k, random.Uniform()));
    out.Add(static_cast<char>(tokens.back()));
  }
  out.Flush();
  return absl::OkStatus();
}

}  // namespace siphon
