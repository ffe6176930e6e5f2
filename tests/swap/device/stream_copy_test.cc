#include "swap/device/stream_copy.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siphon {
namespace {

std::byte Pattern(size_t i) { return static_cast<std::byte>((i * 2654435761U) >> 13); }

TEST(StreamCopy, CopiesTheBytesAndNoOthersFromAnywhereToAnywhere) {
  constexpr size_t kRoom = 256;  // more than a line at either side
  constexpr auto kGuard = std::byte{0xA5};
  std::vector<std::byte> from(2 * kStreamedBytes + kRoom);
  for (size_t i = 0; i < from.size(); ++i) from[i] = Pattern(i);
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{63}, size_t{4096}, kStreamedBytes - 1, kStreamedBytes,
        kStreamedBytes + 1, kStreamedBytes + 63, kStreamedBytes + 65, 2 * kStreamedBytes - 7}) {
    for (const size_t source : {0, 1, 17, 64, 100}) {
      for (const size_t target : {0, 1, 16, 63, 64, 101}) {
        SCOPED_TRACE(testing::Message() << bytes << " from " << source << " to " << target);
        std::vector<std::byte> to(bytes + kRoom, kGuard);
        StreamCopy(absl::MakeConstSpan(from).subspan(source, bytes),
                   absl::MakeSpan(to).subspan(target, bytes));
        size_t wrong = 0;
        for (size_t i = 0; i < to.size(); ++i) {
          const bool inside = i >= target && i < target + bytes;
          if (to[i] != (inside ? from[source + i - target] : kGuard)) ++wrong;
        }
        ASSERT_EQ(wrong, 0u);
      }
    }
  }
}

}  // namespace
}  // namespace siphon
