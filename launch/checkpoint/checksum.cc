#include "launch/checkpoint/checksum.h"

#define XXH_INLINE_ALL  // the library is then needed only to compile
#include <xxhash.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace siphon {

uint64_t Checksum(absl::Span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t Checksum(absl::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::string ChecksumText(uint64_t checksum) {
  return absl::StrCat(absl::Hex(checksum, absl::kZeroPad16));
}

std::optional<uint64_t> ParseChecksum(absl::string_view text) {
  uint64_t checksum = 0;
  if (!absl::SimpleHexAtoi(text, &checksum) || ChecksumText(checksum) != text) return std::nullopt;
  return checksum;
}

}  // namespace siphon
