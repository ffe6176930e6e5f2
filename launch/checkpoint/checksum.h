#ifndef SIPHON_LAUNCH_CHECKPOINT_CHECKSUM_H_
#define SIPHON_LAUNCH_CHECKPOINT_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace siphon {

// XXH3, 64 bits: finds damage and edits, not forgery.
uint64_t Checksum(absl::Span<const std::byte> bytes);
uint64_t Checksum(absl::string_view text);

// 16 hexadecimal digits, and back; nothing else parses.
std::string ChecksumText(uint64_t checksum);
std::optional<uint64_t> ParseChecksum(absl::string_view text);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_CHECKSUM_H_
