#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/checkpoint/checkpoint.h"
#include "launch/checkpoint/checkpoint_directory.h"
#include "launch/checkpoint/checksum.h"
#include "launch/checkpoint/sidecar.h"
#include "planner/status.h"
#include "spdlog/spdlog.h"

namespace siphon {
namespace {

std::string Path(const std::string& directory, const std::string& name) {
  return std::filesystem::path(directory) / name;
}

enum class Part { kParameters, kOptimizer };

std::string ShardName(Part part, int worker, int workers) {
  return absl::StrFormat("%s-%05d-of-%05d.safetensors",
                         part == Part::kParameters ? "model" : "optimizer", worker + 1, workers);
}

// Writes one of a worker's two files and notes it; none when it would be empty.
absl::Status WritePart(const std::string& partial, Part part, const std::string& name,
                       const std::vector<CheckpointTensor>& tensors, const FileOperations& files,
                       CheckpointContents& contents) {
  std::vector<NamedTensor> chosen;
  auto& entries = part == Part::kParameters ? contents.parameters : contents.optimizer;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.optimizer != (part == Part::kOptimizer)) continue;
    TensorEntry& entry = entries[tensor.name];
    entry = {.file = name, .spec = ToString(tensor.spec)};
    // The checksum is of what is written, so that what is away comes in once.
    const auto bring = [&tensor, &entry]() -> absl::StatusOr<absl::Span<const std::byte>> {
      SIPHON_ASSIGN_OR_RETURN(const absl::Span<const std::byte> bytes, MemoryOf(tensor));
      entry.checksum = Checksum(bytes);
      return bytes;
    };
    chosen.push_back({.name = tensor.name, .spec = tensor.spec, .bring = bring});
  }
  if (chosen.empty()) return absl::OkStatus();
  // Hugging Face's loader asks for this entry.
  SIPHON_ASSIGN_OR_RETURN(const WrittenFile written,
                          WriteSafetensors(Path(partial, name), chosen, {{"format", "pt"}}, files));
  contents.files[name] = {.size = written.size, .checksum = written.header_checksum};
  return absl::OkStatus();
}

// Moves `from` into `into`. Errors: Internal when both have a tensor.
absl::Status Merge(std::map<std::string, TensorEntry> from,
                   std::map<std::string, TensorEntry>& into) {
  into.merge(from);
  if (from.empty()) return absl::OkStatus();
  const auto& [name, entry] = *from.begin();
  return absl::InternalError(absl::StrCat(
      "tensor '", name, "' is in two shards: ", into.at(name).file, " and ", entry.file));
}

absl::StatusOr<CheckpointContents> MergeShards(const std::vector<std::string>& texts) {
  CheckpointContents contents;
  std::set<int> workers;
  for (const std::string& text : texts) {
    SIPHON_ASSIGN_OR_RETURN(Shard shard, ParseShard(text));
    const bool known = shard.workers == static_cast<int>(texts.size()) &&
                       shard.worker < shard.workers && workers.insert(shard.worker).second;
    if (!known) {
      return absl::InternalError(absl::StrCat("shard of worker ", shard.worker, " of ",
                                              shard.workers, " among ", texts.size(),
                                              " shards, of which each worker has one"));
    }
    contents.files.merge(shard.contents.files);
    SIPHON_RETURN_IF_ERROR(Merge(std::move(shard.contents.parameters), contents.parameters));
    SIPHON_RETURN_IF_ERROR(Merge(std::move(shard.contents.optimizer), contents.optimizer));
  }
  return contents;
}

absl::StatusOr<int64_t> TotalSize(const std::string& partial, const CheckpointContents& contents) {
  int64_t total = 0;
  std::set<std::string> names;
  for (const auto& [name, entry] : contents.parameters) names.insert(entry.file);
  for (const std::string& name : names) {
    SIPHON_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(Path(partial, name)));
    for (const StoredTensor& tensor : file.tensors()) total += tensor.size;
  }
  return total;
}

absl::Status WriteIndex(const std::string& partial, const FileOperations& files,
                        CheckpointContents& contents) {
  SafetensorsIndex index;
  SIPHON_ASSIGN_OR_RETURN(index.total_size, TotalSize(partial, contents));
  for (const auto& [name, entry] : contents.parameters) index.files[name] = entry.file;
  SIPHON_ASSIGN_OR_RETURN(const std::string text, IndexText(index));
  contents.files[kIndexName] = {.size = static_cast<int64_t>(text.size()),
                                .checksum = Checksum(text)};
  return WriteTextFile(Path(partial, kIndexName), text, files);
}

absl::StatusOr<int64_t> NextSequence(const std::string& directory) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> found, ListCheckpoints(directory));
  int64_t highest = 0;
  for (const StoredCheckpoint& checkpoint : found) {
    highest = std::max(highest, checkpoint.sequence.value_or(0));
  }
  return highest + 1;
}

}  // namespace

absl::StatusOr<std::string> BeginCheckpoint(const std::string& directory, int64_t step,
                                            const FileOperations& files) {
  SIPHON_RETURN_IF_ERROR(MakeDirectories(directory, files));
  const absl::Status cleaned = CleanCheckpointDirectory(directory, files);
  if (!cleaned.ok()) spdlog::warn("remains of an interrupted save: {}", cleaned.ToString());
  const std::string partial = PartialPath(directory, step);
  if (files.make_directory(partial.c_str(), 0777) < 0) {
    return FileError(errno, absl::StrCat(partial, ": making the directory"));
  }
  return partial;
}

absl::StatusOr<std::string> WriteCheckpointShard(const std::string& partial, int worker,
                                                 int workers,
                                                 const std::vector<CheckpointTensor>& tensors,
                                                 const FileOperations& files) {
  Shard shard{.worker = worker, .workers = workers};
  for (const Part part : {Part::kParameters, Part::kOptimizer}) {
    SIPHON_RETURN_IF_ERROR(
        WritePart(partial, part, ShardName(part, worker, workers), tensors, files, shard.contents));
  }
  return ShardText(shard);
}

absl::StatusOr<std::string> FinishCheckpoint(const std::string& partial, const CheckpointInfo& info,
                                             const std::vector<std::string>& shards, int64_t keep,
                                             const FileOperations& files) {
  const std::string directory = std::filesystem::path(partial).parent_path();
  Sidecar sidecar{.info = info};
  SIPHON_ASSIGN_OR_RETURN(sidecar.contents, MergeShards(shards));
  SIPHON_RETURN_IF_ERROR(WriteIndex(partial, files, sidecar.contents));
  SIPHON_ASSIGN_OR_RETURN(sidecar.sequence, NextSequence(directory));
  SIPHON_ASSIGN_OR_RETURN(const std::string text, SidecarText(sidecar));
  SIPHON_RETURN_IF_ERROR(WriteTextFile(Path(partial, kSidecarName), text, files));
  SIPHON_RETURN_IF_ERROR(SyncDirectory(partial, files));
  // What we are about to call complete has to open.
  if (const auto written = Checkpoint::Open(partial); !written.ok()) {
    return Annotate(absl::InternalError(written.status().message()), "checking what was written");
  }
  SIPHON_ASSIGN_OR_RETURN(const std::string path, PublishCheckpoint(partial, files));
  const absl::Status pruned = PruneCheckpoints(directory, path, keep, files);
  if (!pruned.ok()) spdlog::warn("an old checkpoint could not be deleted: {}", pruned.ToString());
  return path;
}

void AbandonCheckpoint(const std::string& partial, const FileOperations& files) {
  const absl::Status removed = RemoveTree(partial, files);
  if (!removed.ok()) spdlog::warn("an unfinished checkpoint stays behind: {}", removed.ToString());
}

}  // namespace siphon
