#ifndef SIPHON_LAUNCH_CHECKPOINT_SIDECAR_H_
#define SIPHON_LAUNCH_CHECKPOINT_SIDECAR_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/checkpoint/checkpoint_info.h"

namespace siphon {

// The JSON texts of a checkpoint as values. All texts are indented by 2 for people.

inline constexpr char kSidecarName[] = "siphon.json";
inline constexpr char kIndexName[] = "model.safetensors.index.json";
inline constexpr int64_t kMostJsonBytes = int64_t{64} << 20;  // of one of these files

// A file of the checkpoint. Checksums of tensors files cover their header, that of the index the
// whole file; tensors have checksums of their own.
struct FileEntry {
  int64_t size = 0;
  uint64_t checksum = 0;
  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};

struct TensorEntry {
  std::string file;
  std::string spec;  // "F32[4, 128]"
  uint64_t checksum = 0;
  friend bool operator==(const TensorEntry&, const TensorEntry&) = default;
};

// What files hold: of one worker's shard, or of a whole checkpoint. Keys are names.
struct CheckpointContents {
  std::map<std::string, FileEntry> files;
  std::map<std::string, TensorEntry> parameters;
  std::map<std::string, TensorEntry> optimizer;
  friend bool operator==(const CheckpointContents&, const CheckpointContents&) = default;
};

struct Shard {
  int worker = 0;
  int workers = 1;
  CheckpointContents contents;
};

struct Sidecar {
  CheckpointInfo info;
  int64_t sequence =
      0;  // grows by one with every checkpoint that a directory gets: the highest is the newest
  CheckpointContents contents;
};

// Hugging Face's index: which file holds a parameter.
struct SafetensorsIndex {
  int64_t total_size = 0;                    // bytes of all tensors; -1: not said
  std::map<std::string, std::string> files;  // by tensor name
};

// Errors of writing: InvalidArgument when a text is not UTF-8. Errors of parsing: InvalidArgument
// saying what is wrong: not JSON, a key that is twice or not there, a value of the wrong type, a
// file name with a path in it; and for the sidecar: foreign, of a newer version, edited (it carries
// a checksum of its own values).
absl::StatusOr<std::string> SidecarText(const Sidecar& sidecar);
absl::StatusOr<Sidecar> ParseSidecar(absl::string_view text);
absl::StatusOr<std::string> ShardText(const Shard& shard);
absl::StatusOr<Shard> ParseShard(absl::string_view text);
absl::StatusOr<std::string> IndexText(const SafetensorsIndex& index);
absl::StatusOr<SafetensorsIndex> ParseIndex(absl::string_view text);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_SIDECAR_H_
