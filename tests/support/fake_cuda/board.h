#ifndef SIPHON_TESTS_SUPPORT_FAKE_CUDA_BOARD_H_
#define SIPHON_TESTS_SUPPORT_FAKE_CUDA_BOARD_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace siphon::fake_cuda {

// The memory of all devices, as all processes see it that share a directory: who has taken what, in
// a file there, and each allocation's bytes in a file of its own. Processes that have died have
// given back what was theirs, as with a real driver.
//
// Processes with another host name, or whose numbers are another name space's, are on another host:
// it has devices of its own, as many and as large. Nothing but the directory is shared with it.
//
// A process that was given no directory makes one when it takes memory or says where it is, and
// removes it when it exits: one that only asks, and may be killed then, leaves nothing behind.
//
// Thread-safety: any thread of any process (a file lock, which ends with who holds it).
class Board {
 public:
  struct Entry {
    int64_t serial = 0;
    uint64_t host = 0;
    int32_t pid = 0;  // 0: none
    int32_t device = 0;
    int64_t bytes = 0;
    int64_t openers = 0;
  };

  static Board& The();
  // This process's.
  static uint64_t Host();

  // Takes memory of a device; none: there is not enough. The entry's file is as long as it says;
  // what nobody reads or writes has none.
  enum class Use { kData, kNothing };
  std::optional<Entry> Take(int device, size_t bytes, Use use);
  // Gives back. Returns how many have it open.
  int64_t GiveBack(int64_t serial);
  // One more, or one less, has it open. False: nobody lends it any more.
  bool ChangeOpeners(int64_t serial, int change);
  size_t Free(int device);
  std::string FileOf(int64_t serial) const;
  const std::string& directory();

 private:
  struct Books;

  Board();
  bool IsOpen();
  void Open();
  bool MakeFile(const Entry& entry) const;
  // Requires: it is open. The dead have no entries in it.
  class Locked;

  std::string directory_;
  int32_t owner_ = 0;  // of a directory of its own: the process that made it
  int file_ = -1;
  Books* books_ = nullptr;

  friend void RemoveOwnDirectory();
};

}  // namespace siphon::fake_cuda

#endif  // SIPHON_TESTS_SUPPORT_FAKE_CUDA_BOARD_H_
