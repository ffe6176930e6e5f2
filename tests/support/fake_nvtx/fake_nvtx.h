#ifndef SIPHON_TESTS_SUPPORT_FAKE_NVTX_FAKE_NVTX_H_
#define SIPHON_TESTS_SUPPORT_FAKE_NVTX_FAKE_NVTX_H_

#include <cstdint>

// A profiler for tests, as NVTX_INJECTION64_PATH names it: writes down what NVTX tells it. Tests
// find these functions by dlopen of the same file and dlsym.
extern "C" {
// Lines, in the order in which they came, each with the number of ranges that the thread has open
// then: "push 1 0F0", "pop 0", "start 7 copy out, link 1", "end 7", "stream NAME", "thread NAME".
const char* siphon_fake_nvtx_text();
// Ranges of threads and copies that are open; -1: some thread has closed more than it opened.
int64_t siphon_fake_nvtx_open();
}

#endif  // SIPHON_TESTS_SUPPORT_FAKE_NVTX_FAKE_NVTX_H_
