#include "swap/device/stream_copy.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace siphon {

#if defined(__SSE2__)

void StreamCopy(absl::Span<const std::byte> from, absl::Span<std::byte> to) {
  constexpr size_t kLine = 64;
  constexpr size_t kAhead = 16 * kLine;
  if (from.size() < kStreamedBytes) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  const size_t head = -reinterpret_cast<uintptr_t>(to.data()) % kLine;
  std::memcpy(to.data(), from.data(), head);
  const size_t end = head + (from.size() - head) / kLine * kLine;
  for (size_t line = head; line < end; line += kLine) {
    const std::byte* const source = from.data() + line;
    // Beyond the end it is a hint that nothing follows.
    _mm_prefetch(reinterpret_cast<const char*>(source) + kAhead, _MM_HINT_NTA);
    for (size_t part = 0; part < kLine; part += sizeof(__m128i)) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + part));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to.data() + line + part), bytes);
    }
  }
  _mm_sfence();
  std::memcpy(to.data() + end, from.data() + end, from.size() - end);
}

#else

void StreamCopy(absl::Span<const std::byte> from, absl::Span<std::byte> to) {
  std::memcpy(to.data(), from.data(), from.size());
}

#endif

}  // namespace siphon
