#include <algorithm>
#include <cstring>

#include "tests/swap/device/backend_rig.h"

namespace siphon {

std::vector<std::byte> RigPattern(size_t bytes, uint64_t seed) {
  std::vector<std::byte> pattern(bytes);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (size_t at = 0; at < bytes; at += sizeof(state)) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(&pattern[at], &state, std::min(sizeof(state), bytes - at));
  }
  return pattern;
}

}  // namespace siphon
