#ifndef SIPHON_LAUNCH_CHECKPOINT_SAFETENSORS_H_
#define SIPHON_LAUNCH_CHECKPOINT_SAFETENSORS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/tensor_spec.h"

namespace siphon {

struct NamedTensor {
  std::string name;
  TensorSpec spec;
  absl::Span<const std::byte> bytes;
};

// Writes one safetensors file and fsyncs it. Errors: ResourceExhausted when the disk is full, Internal for other I/O
// failures (with errno's text and the path); a file that could not be written whole is removed.
absl::Status WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata);

// A file mapped for reading, checked whole: header length and JSON, known types, sizes that match shapes, offsets that
// neither overlap nor leave gaps nor pass the end. Errors: InvalidArgument naming file and tensor; NotFound.
class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);
  const std::vector<NamedTensor>& tensors() const { return tensors_; }  // spans live as long as this object
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::shared_ptr<const void> mapping_;  // copies of this object share the mapping
  std::vector<NamedTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_SAFETENSORS_H_
