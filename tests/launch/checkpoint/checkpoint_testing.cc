#include "tests/launch/checkpoint/checkpoint_testing.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/status.h"

namespace siphon {

TemporaryDirectory::TemporaryDirectory()
    : TemporaryDirectory(::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : testing::TempDir()) {}

TemporaryDirectory::TemporaryDirectory(const std::string& root) {
  path_ = root + "checkpoint_test_XXXXXX";
  SIPHON_CHECK(::mkdtemp(path_.data()) != nullptr, "a temporary directory can be made");
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string SafetensorsBytes(const std::string& json, const std::string& data) {
  const uint64_t length = json.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + json + data;
}

void TensorSet::Add(const std::string& name, bool optimizer, const std::vector<int64_t>& shape,
                    int seed) {
  const TensorSpec spec{DType::kFloat32, shape};
  uint64_t state = static_cast<uint64_t>(seed) * 1'000'003 + 17;
  for (const char letter : name) state = state * 31 + static_cast<unsigned char>(letter);
  std::vector<std::byte>& bytes = storage_.emplace_back(static_cast<size_t>(SizeOf(spec).value));
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  tensors_.push_back(
      {.name = name, .optimizer = optimizer, .spec = spec, .bytes = absl::MakeSpan(bytes)});
}

TensorSet TensorSet::Blank() const {
  TensorSet blank;
  for (const CheckpointTensor& tensor : tensors_) {
    blank.Add(tensor.name, tensor.optimizer, tensor.spec.shape, 0);
    std::fill(blank.storage_.back().begin(), blank.storage_.back().end(), std::byte{0});
  }
  return blank;
}

std::string TensorSet::Bytes() const {
  std::string all;
  for (const CheckpointTensor& tensor : tensors_) {
    all.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  return all;
}

TensorSet LayersOf(int worker, int workers, int seed) {
  constexpr int kLayers = 8;
  TensorSet set;
  for (int layer = worker * kLayers / workers; layer < (worker + 1) * kLayers / workers; ++layer) {
    const std::string name = absl::StrCat("layer.", layer, ".weight");
    set.Add(name, false, {3, layer + 1}, seed);
    set.Add(name + ".exp_avg", true, {3, layer + 1}, seed);
    set.Add(name + ".exp_avg_sq", true, {3, layer + 1}, seed);
  }
  return set;
}

TensorSet AllLayers(int seed) { return LayersOf(0, 1, seed); }

CheckpointInfo InfoAt(int64_t step) {
  return {.step = step,
          .samples_consumed = step * 32,
          .seed = -7,
          .threads_per_worker = 2,
          .optimizer = "adamw",
          .data_fingerprint = "00ff",
          .tokenizer = "bytes",
          .job_text = "model:\n  kind: gpt\n",
          .plan_text = "0F0 0B0\n1F0 1B0\n"};
}

const FileOperations& UnsyncedFiles() {
  static const FileOperations* const files = [] {
    auto* unsynced = new FileOperations(SystemFiles());
    unsynced->sync = [](int) { return 0; };
    return unsynced;
  }();
  return *files;
}

absl::StatusOr<std::string> Save(const std::string& directory, int64_t step, int workers, int seed,
                                 int64_t keep, const FileOperations& files) {
  SIPHON_ASSIGN_OR_RETURN(const std::string partial, BeginCheckpoint(directory, step, files));
  std::vector<std::string> shards;
  absl::StatusOr<std::string> result;
  for (int worker = 0; worker < workers; ++worker) {
    const TensorSet set = LayersOf(worker, workers, seed);
    result = WriteCheckpointShard(partial, worker, workers, set.tensors(), files);
    if (!result.ok()) break;
    shards.push_back(*result);
  }
  if (result.ok()) result = FinishCheckpoint(partial, InfoAt(step), shards, keep, files);
  if (!result.ok()) AbandonCheckpoint(partial, files);
  return result;
}

int64_t NewestIntactStep(const std::string& directory, const std::string& context) {
  const auto newest = NewestCheckpoint(directory);
  if (absl::IsNotFound(newest.status())) return -1;
  EXPECT_TRUE(newest.ok()) << context << ": " << newest.status();
  if (!newest.ok()) return -2;
  const auto checkpoint = Checkpoint::Open(*newest);
  EXPECT_TRUE(checkpoint.ok()) << context << ": " << checkpoint.status();
  if (!checkpoint.ok()) return -2;
  const int64_t step = checkpoint->info().step;
  const TensorSet expected = AllLayers(static_cast<int>(step));
  const TensorSet read = expected.Blank();
  const absl::Status status = checkpoint->Read(read.tensors());
  EXPECT_TRUE(status.ok()) << context << ": " << status;
  EXPECT_EQ(read.Bytes(), expected.Bytes()) << context;
  return step;
}

}  // namespace siphon
