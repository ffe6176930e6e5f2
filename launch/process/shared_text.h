#ifndef SIPHON_LAUNCH_PROCESS_SHARED_TEXT_H_
#define SIPHON_LAUNCH_PROCESS_SHARED_TEXT_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace siphon {

// A short text in shared memory: one writer, readers in any process, no locks. All zeros is the
// empty text. A longer text is cut to kCapacity bytes.
template <size_t kCapacity>
class SharedText {
 public:
  void Store(absl::string_view text) {
    const size_t size = std::min(text.size(), kCapacity);
    const uint32_t before = sequence_.load(std::memory_order_relaxed);
    sequence_.store(before | 1, std::memory_order_relaxed);
    // Each release below keeps the odd number in front of what it announces.
    size_.store(static_cast<uint32_t>(size), std::memory_order_release);
    for (size_t begin = 0; begin < size; begin += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + begin, std::min(sizeof word, size - begin));
      words_[begin / sizeof word].store(word, std::memory_order_release);
    }
    sequence_.store((before | 1) + 1, std::memory_order_release);
  }

  std::string Load() const {
    std::string text;
    // A writer killed half-way leaves the number odd for ever: after some tries the text is taken
    // as it is.
    for (int attempt = 0; attempt < 1000; ++attempt) {
      const uint32_t before = sequence_.load(std::memory_order_acquire);
      const size_t size = std::min<size_t>(size_.load(std::memory_order_acquire), kCapacity);
      text.assign(size, '\0');
      for (size_t begin = 0; begin < size; begin += sizeof(uint64_t)) {
        const uint64_t word = words_[begin / sizeof(uint64_t)].load(std::memory_order_acquire);
        std::memcpy(text.data() + begin, &word, std::min(sizeof word, size - begin));
      }
      if ((before & 1) == 0 && sequence_.load(std::memory_order_relaxed) == before) break;
    }
    return text;
  }

 private:
  static_assert(kCapacity % sizeof(uint64_t) == 0);
  static_assert(std::atomic<uint64_t>::is_always_lock_free);

  std::atomic<uint32_t> sequence_;  // odd while being written
  std::atomic<uint32_t> size_;
  std::atomic<uint64_t> words_[kCapacity / sizeof(uint64_t)];
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_SHARED_TEXT_H_
