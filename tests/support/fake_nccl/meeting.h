#ifndef SIPHON_TESTS_SUPPORT_FAKE_NCCL_MEETING_H_
#define SIPHON_TESTS_SUPPORT_FAKE_NCCL_MEETING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace siphon::fake_nccl {

inline constexpr int kMostRanks = 8;

// A posted send: where its bytes are on the fake board.
struct Post {
  int64_t serial = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
};

// Messages from one rank to another one.
struct Line {
  static constexpr int64_t kPosts = 64;
  std::atomic<int64_t> posted;  // sends
  std::atomic<int64_t> taken;   // of them, received
  Post posts[kPosts];
};

// What the ranks of one communicator share, zero at the begin, in memory that all map.
struct Page {
  struct Rank {
    std::atomic<uint64_t> host;
    std::atomic<int32_t> device;
  };
  std::atomic<uint32_t> bell;
  std::atomic<int32_t> joined;
  Rank ranks[kMostRanks];
  Line lines[kMostRanks][kMostRanks];  // [from][to]
};

// This process's mapping of a page, which is a file in the fake board's directory until all have
// joined. Thread-safety: any thread.
class Meeting {
 public:
  // Makes the file; its name is the communicator's id.
  static std::string Arrange();
  // Null: there is no such file.
  static std::shared_ptr<Meeting> Join(const std::string& name, int ranks, int rank, int device);
  ~Meeting();

  Page& page() const { return *page_; }
  bool IsComplete() const { return page_->joined >= ranks_; }
  // Requires: it is complete.
  bool HasTwoRanksOnOneDevice() const;

  void Ring();
  uint32_t Bell() const { return page_->bell; }
  // Until somebody has rung since `bell` was read, or for a short time.
  void WaitForRing(uint32_t bell);

 private:
  Meeting(Page* page, int ranks) : page_(page), ranks_(ranks) {}
  Page* const page_;
  const int ranks_;
};

}  // namespace siphon::fake_nccl

#endif  // SIPHON_TESTS_SUPPORT_FAKE_NCCL_MEETING_H_
