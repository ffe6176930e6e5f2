#ifndef SIPHON_TESTS_LAUNCH_CHECKPOINT_CHECKPOINT_TESTING_H_
#define SIPHON_TESTS_LAUNCH_CHECKPOINT_CHECKPOINT_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/checkpoint/checkpoint.h"
#include "launch/checkpoint/file_operations.h"

namespace siphon {

// A directory of this test's own, removed with the object.
class TemporaryDirectory {
 public:
  // In memory where there is /dev/shm: file systems on disk flush a file that is written anew,
  // which some tests do 10,000 times.
  TemporaryDirectory();
  explicit TemporaryDirectory(const std::string& root);
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string ReadAll(const std::string& path);
void WriteAll(const std::string& path, const std::string& bytes);
// Sorted names of everything in a directory, hidden ones too.
std::vector<std::string> NamesIn(const std::string& directory);
// A safetensors file's bytes: length, this JSON, these data.
std::string SafetensorsBytes(const std::string& json, const std::string& data);

// Tensors with storage, as a stage would hold them.
class TensorSet {
 public:
  // Filled with bytes that `seed` and the name decide.
  void Add(const std::string& name, bool optimizer, const std::vector<int64_t>& shape, int seed);
  // The same names and shapes, all bytes zero.
  TensorSet Blank() const;
  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  // Bytes of all, one after the other.
  std::string Bytes() const;

 private:
  std::vector<std::vector<std::byte>> storage_;
  std::vector<CheckpointTensor> tensors_;
};

// A model of 8 layers: parameter "layer.<i>.weight" [3, i + 1] with two moments each; those of
// worker `worker` of `workers`.
TensorSet LayersOf(int worker, int workers, int seed);
TensorSet AllLayers(int seed);

CheckpointInfo InfoAt(int64_t step);

// SystemFiles() without fsync, which takes most of the time of tests that save often.
const FileOperations& UnsyncedFiles();

// A whole save of LayersOf(.., seed) by `workers` workers, as a run does it: with AbandonCheckpoint
// after an error.
absl::StatusOr<std::string> Save(const std::string& directory, int64_t step, int workers, int seed,
                                 int64_t keep, const FileOperations& files = UnsyncedFiles());

// Step of the newest checkpoint, which must open and hold AllLayers(seed) for a seed equal to the
// step; -1 for none. Anything else is a test failure that names `context`.
int64_t NewestIntactStep(const std::string& directory, const std::string& context);

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_CHECKPOINT_CHECKPOINT_TESTING_H_
