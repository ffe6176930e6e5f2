#include "launch/checkpoint/sidecar.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/checkpoint/checksum.h"
#include "launch/checkpoint/json_reader.h"
#include "planner/status.h"

namespace siphon {
namespace {

using Json = nlohmann::json;

constexpr char kFormat[] = "siphon checkpoint";
constexpr int64_t kVersion = 1;

Json ToJson(const std::map<std::string, TensorEntry>& tensors) {
  Json json = Json::object();
  for (const auto& [name, tensor] : tensors) {
    json[name] = {
        {"file", tensor.file}, {"spec", tensor.spec}, {"checksum", ChecksumText(tensor.checksum)}};
  }
  return json;
}

Json ToJson(const std::map<std::string, FileEntry>& files) {
  Json json = Json::object();
  for (const auto& [name, file] : files) {
    json[name] = {{"bytes", file.size}, {"checksum", ChecksumText(file.checksum)}};
  }
  return json;
}

void AddContents(const CheckpointContents& contents, Json& json) {
  json["files"] = ToJson(contents.files);
  json["parameters"] = ToJson(contents.parameters);
  json["optimizer_state"] = ToJson(contents.optimizer);
}

std::map<std::string, TensorEntry> TensorsOf(ObjectReader& reader, const std::string& key,
                                             const std::map<std::string, FileEntry>& files) {
  std::map<std::string, TensorEntry> tensors;
  for (const auto& [name, json] : reader.Object(key).items()) {
    ObjectReader entry(json, absl::StrCat(key, ": tensor '", name, "'"));
    TensorEntry tensor{.file = entry.Text("file"),
                       .spec = entry.Text("spec"),
                       .checksum = entry.ChecksumOf("checksum")};
    if (entry.status().ok() && !files.contains(tensor.file)) {
      entry.Fail(absl::StrCat("its file '", tensor.file, "' is not under 'files'"));
    }
    if (!entry.status().ok()) reader.Fail(entry.status().message());
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

// A power of two, so that its exponent says it to the bit.
LossScale LossScaleOf(ObjectReader& reader) {
  ObjectReader entry(reader.Object("loss_scale"), "loss_scale");
  const int64_t log2 = entry.SignedInteger("log2");
  const LossScale scale{
      .scale = std::ldexp(1.0F, static_cast<int>(std::clamp<int64_t>(log2, -200, 200))),
      .fine_steps = entry.Integer("fine_steps"),
      .skipped_steps = entry.Integer("skipped_steps")};
  const bool normal = std::isnormal(scale.scale);
  if (entry.status().ok() && !normal) entry.Fail(absl::StrCat("log2 ", log2, " is no scale"));
  if (!entry.status().ok()) reader.Fail(entry.status().message());
  return scale;
}

CheckpointContents ContentsOf(ObjectReader& reader) {
  CheckpointContents contents;
  for (const auto& [name, json] : reader.Object("files").items()) {
    ObjectReader entry(json, absl::StrCat("files: '", name, "'"));
    const FileEntry file{.size = entry.Integer("bytes"), .checksum = entry.ChecksumOf("checksum")};
    if (!entry.status().ok()) reader.Fail(entry.status().message());
    if (const auto plain = CheckFileName(name); !plain.ok()) {
      reader.Fail(absl::StrCat("files: ", plain.message()));
    }
    contents.files.emplace(name, file);
  }
  contents.parameters = TensorsOf(reader, "parameters", contents.files);
  contents.optimizer = TensorsOf(reader, "optimizer_state", contents.files);
  return contents;
}

// Format and version first: a newer program may have another rule for everything else.
absl::Status CheckOrigin(const Json& json) {
  if (!json.is_object() || !json.contains("format") || json["format"] != kFormat) {
    return absl::InvalidArgumentError(
        absl::StrCat("is not the sidecar of a Siphon checkpoint: it does not say \"format\": \"",
                     kFormat, "\""));
  }
  ObjectReader reader(json, "");
  const int64_t version = reader.Integer("version");
  SIPHON_RETURN_IF_ERROR(reader.status());
  if (version >= 1 && version <= kVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("has format version ", version,
                                                 ", and this program reads versions up to ",
                                                 kVersion, ": a newer Siphon wrote it"));
}

// The checksum covers the values and not the blanks between them.
absl::StatusOr<std::string> ChecksumWithout(Json json) {
  json.erase("checksum");
  SIPHON_ASSIGN_OR_RETURN(const std::string text, JsonText(json));
  return ChecksumText(Checksum(text));
}

absl::Status CheckUnedited(const Json& json) {
  ObjectReader reader(json, "");
  const std::string stated = reader.Text("checksum");
  SIPHON_RETURN_IF_ERROR(reader.status());
  SIPHON_ASSIGN_OR_RETURN(const std::string actual, ChecksumWithout(json));
  if (stated == actual) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("was edited or damaged: its values have checksum ",
                                                 actual, ", and it says ", stated));
}

}  // namespace

absl::StatusOr<std::string> SidecarText(const Sidecar& sidecar) {
  const CheckpointInfo& info = sidecar.info;
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"sequence", sidecar.sequence},
               {"step", info.step},
               {"samples_consumed", info.samples_consumed},
               {"seed", info.seed},
               {"threads_per_worker", info.threads_per_worker},
               {"optimizer", info.optimizer},
               {"precision", info.precision},
               {"loss_scale",
                {{"log2", std::ilogb(info.loss_scale.scale)},
                 {"fine_steps", info.loss_scale.fine_steps},
                 {"skipped_steps", info.loss_scale.skipped_steps}}},
               {"accumulation_order", info.accumulation_order},
               {"data_fingerprint", info.data_fingerprint},
               {"tokenizer", info.tokenizer},
               {"job", JsonLines(info.job_text)},
               {"plan", JsonLines(info.plan_text)}};
  AddContents(sidecar.contents, json);
  SIPHON_ASSIGN_OR_RETURN(json["checksum"], ChecksumWithout(json));
  return JsonText(json);
}

absl::StatusOr<Sidecar> ParseSidecar(absl::string_view text) {
  SIPHON_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  SIPHON_RETURN_IF_ERROR(CheckOrigin(json));
  SIPHON_RETURN_IF_ERROR(CheckUnedited(json));
  ObjectReader reader(json, "");
  Sidecar sidecar;
  sidecar.info = {.step = reader.Integer("step"),
                  .samples_consumed = reader.Integer("samples_consumed"),
                  .seed = reader.SignedInteger("seed"),
                  .threads_per_worker = reader.Integer("threads_per_worker"),
                  .optimizer = reader.Text("optimizer"),
                  .accumulation_order = reader.Text("accumulation_order"),
                  .data_fingerprint = reader.Text("data_fingerprint"),
                  .tokenizer = reader.Text("tokenizer"),
                  .job_text = reader.Lines("job"),
                  .plan_text = reader.Lines("plan")};
  if (reader.Has("precision")) {  // not in checkpoints of programs that knew float32 only
    sidecar.info.precision = reader.Text("precision");
    sidecar.info.loss_scale = LossScaleOf(reader);
  }
  sidecar.sequence = reader.Integer("sequence");
  sidecar.contents = ContentsOf(reader);
  SIPHON_RETURN_IF_ERROR(reader.status());
  return sidecar;
}

absl::StatusOr<std::string> ShardText(const Shard& shard) {
  Json json = {{"worker", shard.worker}, {"workers", shard.workers}};
  AddContents(shard.contents, json);
  return JsonText(json);
}

absl::StatusOr<Shard> ParseShard(absl::string_view text) {
  SIPHON_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  ObjectReader reader(json, "");
  Shard shard{.worker = static_cast<int>(reader.Integer("worker")),
              .workers = static_cast<int>(reader.Integer("workers"))};
  shard.contents = ContentsOf(reader);
  SIPHON_RETURN_IF_ERROR(reader.status());
  return shard;
}

absl::StatusOr<std::string> IndexText(const SafetensorsIndex& index) {
  Json files = Json::object();
  for (const auto& [name, file] : index.files) files[name] = file;
  return JsonText({{"metadata", {{"total_size", index.total_size}}}, {"weight_map", files}});
}

absl::StatusOr<SafetensorsIndex> ParseIndex(absl::string_view text) {
  SIPHON_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  ObjectReader reader(json, "");
  SafetensorsIndex index{.total_size = -1};
  if (reader.Has("metadata")) {
    const Json& metadata = reader.Object("metadata");
    const auto total = metadata.find("total_size");  // some writers make it a fraction, or leave it
    if (total != metadata.end() && total->is_number_integer()) index.total_size = *total;
  }
  const Json& map = reader.Object("weight_map");
  ObjectReader files(map, "weight_map");
  for (const auto& [name, json_name] : map.items()) {
    index.files.emplace(name, files.FileName(name));
  }
  SIPHON_RETURN_IF_ERROR(reader.status());
  SIPHON_RETURN_IF_ERROR(files.status());
  return index;
}

}  // namespace siphon
