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
// empty text. A longer text is cut to kCapacity bytes. Two copies take turns, so that a writer that
// stops or dies half-way leaves the text before, whole.
template <size_t kCapacity>
class SharedText {
 public:
  void Store(absl::string_view text) {
    const uint32_t next = stores_.load(std::memory_order_relaxed) + 1;
    copies_[next % 2].Store(text.substr(0, kCapacity));
    stores_.store(next, std::memory_order_release);
  }

  // Tries again only if the writer finished a store meanwhile.
  std::string Load() const {
    for (;;) {
      const uint32_t stores = stores_.load(std::memory_order_acquire);
      std::string text = copies_[stores % 2].Load();
      // What a later store wrote into this copy was released after the number of the store between.
      if (stores_.load(std::memory_order_relaxed) == stores) return text;
    }
  }

 private:
  static_assert(kCapacity % sizeof(uint64_t) == 0);
  static_assert(std::atomic<uint64_t>::is_always_lock_free);

  struct Copy {
    std::atomic<uint32_t> size;
    std::atomic<uint64_t> words[kCapacity / sizeof(uint64_t)];

    void Store(absl::string_view text) {
      size.store(static_cast<uint32_t>(text.size()), std::memory_order_release);
      for (size_t begin = 0; begin < text.size(); begin += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, text.data() + begin, std::min(sizeof word, text.size() - begin));
        words[begin / sizeof word].store(word, std::memory_order_release);
      }
    }

    std::string Load() const {
      std::string text(std::min<size_t>(size.load(std::memory_order_acquire), kCapacity), '\0');
      for (size_t begin = 0; begin < text.size(); begin += sizeof(uint64_t)) {
        const uint64_t word = words[begin / sizeof word].load(std::memory_order_acquire);
        std::memcpy(text.data() + begin, &word, std::min(sizeof word, text.size() - begin));
      }
      return text;
    }
  };

  std::atomic<uint32_t> stores_;  // the last one wrote copies_[stores_ % 2]
  Copy copies_[2];
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_SHARED_TEXT_H_
