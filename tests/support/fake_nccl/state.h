#ifndef SIPHON_TESTS_SUPPORT_FAKE_NCCL_STATE_H_
#define SIPHON_TESTS_SUPPORT_FAKE_NCCL_STATE_H_

#include <atomic>
#include <cstdint>

namespace siphon::fake_nccl {

// What tests set and ask for (fake_nccl.h), of this process.
struct State {
  std::atomic<int64_t> version, questions, delay_ns, memory, one_queue, fail_group, fail_after,
      fail_code;
  std::atomic<int64_t> groups, sends, receives, aborts, communicators, waiting;

  // First values of what is set, zero for what counts up.
  void Reset();
};
State& TheState();

}  // namespace siphon::fake_nccl

#endif  // SIPHON_TESTS_SUPPORT_FAKE_NCCL_STATE_H_
