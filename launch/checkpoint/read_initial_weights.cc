#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "launch/checkpoint/checkpoint.h"
#include "launch/checkpoint/round_floats.h"
#include "launch/checkpoint/sidecar.h"
#include "planner/status.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

// What Hugging Face's classes with a head put before the names of the model inside them.
constexpr std::array<absl::string_view, 2> kBaseModelPrefixes = {"transformer.", "bert."};

struct Found {
  const SafetensorsFile* file = nullptr;
  int tensor = 0;
};

absl::Status Wrong(absl::string_view place, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", what));
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The files that an index names, each once.
absl::StatusOr<std::vector<SafetensorsFile>> OpenIndexed(const std::string& folder) {
  const std::string index_path = fs::path(folder) / kIndexName;
  SIPHON_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(index_path, kMostJsonBytes));
  const auto index = ParseIndex(text);
  if (!index.ok()) return Annotate(index.status(), index_path);
  std::map<std::string, SafetensorsFile> files;
  for (const auto& [tensor, name] : index->files) {
    if (files.contains(name)) continue;
    const std::string path = fs::path(folder) / name;
    auto file = SafetensorsFile::Open(path);
    if (absl::IsNotFound(file.status())) {
      return Wrong(path,
                   absl::StrCat("is missing: ", kIndexName, " names it for tensor '", tensor, "'"));
    }
    SIPHON_RETURN_IF_ERROR(file.status());
    files.emplace(name, *std::move(file));
  }
  std::vector<SafetensorsFile> opened;
  for (auto& [name, file] : files) opened.push_back(std::move(file));
  return opened;
}

absl::StatusOr<std::vector<SafetensorsFile>> OpenWeights(const std::string& path) {
  std::error_code error;
  std::string single = path;
  if (fs::is_directory(path, error)) {
    if (Exists(fs::path(path) / kIndexName)) return OpenIndexed(path);
    single = fs::path(path) / "model.safetensors";
    if (!Exists(single)) {
      return Wrong(path, absl::StrCat("holds neither ", kIndexName, " nor model.safetensors"));
    }
  }
  SIPHON_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(single));
  return std::vector<SafetensorsFile>{std::move(file)};
}

absl::StatusOr<Found> Find(const std::string& path, const std::map<std::string, Found>& tensors,
                           const std::string& name) {
  if (const auto exact = tensors.find(name); exact != tensors.end()) return exact->second;
  for (const absl::string_view prefix : kBaseModelPrefixes) {
    absl::string_view inner = name;
    if (!absl::ConsumePrefix(&inner, prefix)) continue;
    const auto found = tensors.find(std::string(inner));
    if (found != tensors.end()) return found->second;
  }
  return Wrong(
      path, absl::StrCat("tensor '", name, "' is not there, among ", tensors.size(), " tensors"));
}

}  // namespace

absl::Status ReadInitialWeights(const std::string& path,
                                const std::vector<CheckpointTensor>& parameters) {
  if (Exists(fs::path(path) / kSidecarName)) {  // our own: it has checksums
    SIPHON_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
    return checkpoint.Read(parameters);
  }
  SIPHON_ASSIGN_OR_RETURN(const std::vector<SafetensorsFile> files, OpenWeights(path));
  std::map<std::string, Found> tensors;
  for (const SafetensorsFile& file : files) {
    for (size_t tensor = 0; tensor < file.tensors().size(); ++tensor) {
      tensors[file.tensors()[tensor].name] = {.file = &file, .tensor = static_cast<int>(tensor)};
    }
  }
  for (const CheckpointTensor& parameter : parameters) {
    SIPHON_ASSIGN_OR_RETURN(const Found found, Find(path, tensors, parameter.name));
    const StoredTensor& stored = found.file->tensors()[static_cast<size_t>(found.tensor)];
    if (!(stored.spec == StoredSpec(parameter))) {
      return Wrong(absl::StrCat(found.file->path(), ": tensor '", stored.name, "'"),
                   absl::StrCat("is ", ToString(stored.spec), ", and the model needs ",
                                ToString(StoredSpec(parameter))));
    }
    SIPHON_ASSIGN_OR_RETURN(const absl::Span<std::byte> bytes, MemoryOf(parameter));
    if (stored.spec == parameter.spec) {
      SIPHON_RETURN_IF_ERROR(found.file->Read(found.tensor, bytes));
      continue;
    }
    std::vector<std::byte> wide(static_cast<size_t>(stored.size));
    SIPHON_RETURN_IF_ERROR(found.file->Read(found.tensor, absl::MakeSpan(wide)));
    RoundFloats(wide, parameter.spec.dtype, bytes);
  }
  return absl::OkStatus();
}

}  // namespace siphon
