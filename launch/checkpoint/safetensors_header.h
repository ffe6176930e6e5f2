#ifndef SIPHON_LAUNCH_CHECKPOINT_SAFETENSORS_HEADER_H_
#define SIPHON_LAUNCH_CHECKPOINT_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/checkpoint/safetensors.h"

namespace siphon {

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // `begin` counts from the end of the header
  std::map<std::string, std::string> metadata;
};

// Parses the JSON of a header and holds it against itself and against the bytes that follow it.
// Memory stays in proportion to the text whatever it says: nothing is built before it is known to
// belong there. Errors: InvalidArgument saying what is wrong, with the tensor's name where known.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json,
                                                         int64_t data_bytes);

// The JSON of a header, padded with spaces to a multiple of 8. Errors: InvalidArgument for names
// that are not UTF-8.
absl::StatusOr<std::string> SafetensorsHeaderText(const SafetensorsHeader& header);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_SAFETENSORS_HEADER_H_
