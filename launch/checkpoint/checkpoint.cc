#include "launch/checkpoint/checkpoint.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "launch/checkpoint/checkpoint_directory.h"
#include "launch/checkpoint/checksum.h"
#include "launch/checkpoint/round_floats.h"
#include "launch/checkpoint/sidecar.h"
#include "planner/status.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

std::string Path(const std::string& directory, const std::string& name) {
  return fs::path(directory) / name;
}

absl::Status Damaged(absl::string_view place, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", what));
}

// A file that the sidecar lists must be there: NotFound is only for a checkpoint that is not there
// at all.
absl::Status MissingIsDamage(const absl::Status& status, const std::string& path) {
  if (!absl::IsNotFound(status)) return status;
  return Damaged(path, absl::StrCat("is missing: ", kSidecarName, " lists it"));
}

absl::Status NotACheckpoint(const std::string& path) {
  std::string message = absl::StrCat(path, " is not a Siphon checkpoint: it has no ", kSidecarName);
  if (const auto newest = NewestCheckpoint(path); newest.ok()) {
    absl::StrAppend(&message, "; it holds checkpoints, the newest is ", *newest);
  }
  return absl::InvalidArgumentError(message);
}

absl::Status CheckIsDirectory(const std::string& path) {
  std::error_code error;
  const fs::file_status found = fs::status(path, error);
  if (!fs::exists(found)) return absl::NotFoundError(absl::StrCat(path, ": no such checkpoint"));
  if (fs::is_directory(found)) return absl::OkStatus();
  return Damaged(path, "is a file; a checkpoint is a directory");
}

absl::StatusOr<Sidecar> ReadSidecar(const std::string& path) {
  const std::string sidecar_path = Path(path, kSidecarName);
  const auto text = ReadTextFile(sidecar_path, kMostJsonBytes);
  if (absl::IsNotFound(text.status())) return NotACheckpoint(path);
  SIPHON_RETURN_IF_ERROR(text.status());
  auto sidecar = ParseSidecar(*text);
  if (!sidecar.ok()) return Annotate(sidecar.status(), sidecar_path);
  return sidecar;
}

// The index against the sidecar. `total_size` is what the files hold.
absl::Status CheckIndex(const std::string& directory, const CheckpointContents& contents,
                        int64_t total_size) {
  const std::string path = Path(directory, kIndexName);
  const auto text = ReadTextFile(path, kMostJsonBytes);
  if (!text.ok()) return MissingIsDamage(text.status(), path);
  const auto index = ParseIndex(*text);
  if (!index.ok()) return Annotate(index.status(), path);
  for (const auto& [name, entry] : contents.parameters) {
    const auto found = index->files.find(name);
    if (found == index->files.end()) {
      return Damaged(path, absl::StrCat("tensor '", name, "' is missing"));
    }
    if (found->second != entry.file) {
      return Damaged(path, absl::StrCat("tensor '", name, "' is said to be in ", found->second,
                                        ", but is in ", entry.file));
    }
  }
  for (const auto& [name, file] : index->files) {
    if (contents.parameters.contains(name)) continue;
    return Damaged(path, absl::StrCat("tensor '", name, "' is not in the checkpoint"));
  }
  if (index->total_size != total_size) {
    return Damaged(path, absl::StrCat("says total_size ", index->total_size,
                                      ", but the tensors have ", total_size, " bytes"));
  }
  const auto stated = contents.files.find(kIndexName);
  if (stated != contents.files.end() && stated->second.checksum == Checksum(*text)) {
    return absl::OkStatus();
  }
  return Damaged(path, absl::StrCat("was edited: its checksum is not that in ", kSidecarName));
}

// What a file holds against what the sidecar says of it; `entry` is null where the sidecar does not
// know the tensor.
absl::Status CheckTensor(const std::string& place, const StoredTensor& tensor,
                         const TensorEntry* entry) {
  const std::string where = absl::StrCat(place, ": tensor '", tensor.name, "'");
  if (entry == nullptr) {
    return Damaged(where, absl::StrCat("is not listed for this file in ", kSidecarName));
  }
  if (entry->spec == ToString(tensor.spec)) return absl::OkStatus();
  return Damaged(where, absl::StrCat("is ", ToString(tensor.spec), ", and ", kSidecarName, " says ",
                                     entry->spec));
}

absl::Status CheckFile(const SafetensorsFile& file, const FileEntry& entry) {
  if (file.size() != entry.size) {
    return Damaged(file.path(), absl::StrCat("is ", file.size(), " bytes long, and ", kSidecarName,
                                             " says ", entry.size));
  }
  if (file.header_checksum() == entry.checksum) return absl::OkStatus();
  return Damaged(file.path(), absl::StrCat("its header was edited: its checksum is ",
                                           ChecksumText(file.header_checksum()), ", and ",
                                           kSidecarName, " says ", ChecksumText(entry.checksum)));
}

const TensorEntry* FindIn(const std::map<std::string, TensorEntry>& entries,
                          const std::string& name, const std::string& file) {
  const auto found = entries.find(name);
  return found != entries.end() && found->second.file == file ? &found->second : nullptr;
}

}  // namespace

absl::Status Checkpoint::OpenFiles(const CheckpointContents& contents) {
  int64_t total_size = 0;
  for (const auto& [name, file_entry] : contents.files) {
    if (name == kIndexName) continue;
    const std::string file_path = Path(path_, name);
    auto opened = SafetensorsFile::Open(file_path);
    if (!opened.ok()) return MissingIsDamage(opened.status(), file_path);
    const auto& tensors = opened->tensors();
    for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      const TensorEntry* parameter = FindIn(contents.parameters, tensors[tensor].name, name);
      const TensorEntry* entry =
          parameter ? parameter : FindIn(contents.optimizer, tensors[tensor].name, name);
      SIPHON_RETURN_IF_ERROR(CheckTensor(file_path, tensors[tensor], entry));
      if (parameter != nullptr) total_size += tensors[tensor].size;
      entries_[{parameter == nullptr, tensors[tensor].name}] = {
          .file = static_cast<int>(files_.size()),
          .tensor = static_cast<int>(tensor),
          .checksum = entry->checksum};
    }
    SIPHON_RETURN_IF_ERROR(CheckFile(*opened, file_entry));
    files_.push_back(*std::move(opened));
  }
  for (const bool optimizer : {false, true}) {
    for (const auto& [name, entry] : optimizer ? contents.optimizer : contents.parameters) {
      if (entries_.contains({optimizer, name})) continue;
      return Damaged(Path(path_, entry.file),
                     absl::StrCat("tensor '", name, "' is missing: ", kSidecarName, " lists it"));
    }
  }
  return CheckIndex(path_, contents, total_size);
}

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& path) {
  SIPHON_RETURN_IF_ERROR(CheckIsDirectory(path));
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  SIPHON_ASSIGN_OR_RETURN(checkpoint.hold_, HoldForReading(path));
  if (checkpoint.hold_ == nullptr) {
    return absl::NotFoundError(absl::StrCat(path, ": is being deleted by the run that wrote it"));
  }
  SIPHON_ASSIGN_OR_RETURN(Sidecar sidecar, ReadSidecar(path));
  checkpoint.info_ = std::move(sidecar.info);
  SIPHON_RETURN_IF_ERROR(checkpoint.OpenFiles(sidecar.contents));
  return checkpoint;
}

absl::StatusOr<absl::Span<std::byte>> MemoryOf(const CheckpointTensor& tensor) {
  if (tensor.bring == nullptr) return tensor.bytes;
  return tensor.bring();
}

TensorSpec StoredSpec(const CheckpointTensor& tensor) {
  const bool rounded =
      tensor.spec.dtype == DType::kBFloat16 || tensor.spec.dtype == DType::kFloat16;
  return {rounded ? DType::kFloat32 : tensor.spec.dtype, tensor.spec.shape};
}

absl::Status Checkpoint::ReadOne(const CheckpointTensor& wanted) const {
  const auto found = entries_.find({wanted.optimizer, wanted.name});
  if (found == entries_.end()) {
    return Damaged(path_, absl::StrCat("tensor '", wanted.name, "' is not in the checkpoint, ",
                                       wanted.optimizer ? "which holds no such optimizer state"
                                                        : "which is of another model"));
  }
  const Entry& entry = found->second;
  const SafetensorsFile& file = files_[static_cast<size_t>(entry.file)];
  const StoredTensor& stored = file.tensors()[static_cast<size_t>(entry.tensor)];
  const std::string where = absl::StrCat(file.path(), ": tensor '", wanted.name, "'");
  if (!(stored.spec == StoredSpec(wanted))) {
    return Damaged(where, absl::StrCat("is ", ToString(stored.spec), ", and the model needs ",
                                       ToString(StoredSpec(wanted))));
  }
  SIPHON_ASSIGN_OR_RETURN(const absl::Span<std::byte> bytes, MemoryOf(wanted));
  SIPHON_CHECK(static_cast<int64_t>(bytes.size()) == SizeOf(wanted.spec).value,
               "a tensor's bytes fill its shape");
  if (stored.spec == wanted.spec) return ReadVerified(entry, where, bytes);
  std::vector<std::byte> wide(static_cast<size_t>(stored.size));
  SIPHON_RETURN_IF_ERROR(ReadVerified(entry, where, absl::MakeSpan(wide)));
  RoundFloats(wide, wanted.spec.dtype, bytes);
  return absl::OkStatus();
}

absl::Status Checkpoint::ReadVerified(const Entry& entry, const std::string& place,
                                      absl::Span<std::byte> bytes) const {
  SIPHON_RETURN_IF_ERROR(files_[static_cast<size_t>(entry.file)].Read(entry.tensor, bytes));
  const uint64_t checksum = Checksum(absl::Span<const std::byte>(bytes));
  if (checksum == entry.checksum) return absl::OkStatus();
  return Damaged(place,
                 absl::StrCat("was edited or damaged: its checksum is ", ChecksumText(checksum),
                              ", and ", kSidecarName, " says ", ChecksumText(entry.checksum)));
}

absl::Status Checkpoint::Read(const std::vector<CheckpointTensor>& tensors) const {
  for (const CheckpointTensor& tensor : tensors) SIPHON_RETURN_IF_ERROR(ReadOne(tensor));
  return absl::OkStatus();
}

std::string Checkpoint::Describe() const {
  int64_t parameters = 0;
  for (const auto& [key, entry] : entries_) parameters += key.first ? 0 : 1;
  std::string text =
      absl::StrCat(path_, ": step ", info_.step, ", ", info_.samples_consumed, " samples, ",
                   info_.precision, ", optimizer ", info_.optimizer, ", seed ", info_.seed, ", ",
                   info_.threads_per_worker, " threads a worker, ", parameters, " parameters, ",
                   static_cast<int64_t>(entries_.size()) - parameters, " optimizer tensors\n");
  for (const SafetensorsFile& file : files_) {
    absl::StrAppend(&text, "  ", fs::path(file.path()).filename().string(), "  ",
                    file.tensors().size(), " tensors, ", file.size(), " B\n");
  }
  return text;
}

}  // namespace siphon
