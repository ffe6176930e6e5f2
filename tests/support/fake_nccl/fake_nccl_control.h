#ifndef SIPHON_TESTS_SUPPORT_FAKE_NCCL_FAKE_NCCL_CONTROL_H_
#define SIPHON_TESTS_SUPPORT_FAKE_NCCL_FAKE_NCCL_CONTROL_H_

#include <dlfcn.h>

#include <cstdint>

#include "planner/status.h"

namespace siphon {

// The fake NCCL (fake_nccl.h), for tests that may also run on the real one.
class FakeNccl {
 public:
  // Whether NCCL is the fake in this process.
  static bool IsThere() { return Find("siphon_fake_nccl_reset") != nullptr; }

  // Requires: it is there, and knows the name.
  static void Set(const char* name, int64_t value) {
    const auto set = reinterpret_cast<int (*)(const char*, int64_t)>(Find("siphon_fake_nccl_set"));
    SIPHON_CHECK(set != nullptr && set(name, value) == 0, "the fake knows what is set");
  }
  static int64_t Get(const char* name) {
    const auto get = reinterpret_cast<int64_t (*)(const char*)>(Find("siphon_fake_nccl_get"));
    SIPHON_CHECK(get != nullptr && get(name) != INT64_MIN, "the fake knows what is asked for");
    return get(name);
  }
  static void Reset() { reinterpret_cast<void (*)()>(Find("siphon_fake_nccl_reset"))(); }

 private:
  static void* Find(const char* name) { return dlsym(RTLD_DEFAULT, name); }
};

}  // namespace siphon

#endif  // SIPHON_TESTS_SUPPORT_FAKE_NCCL_FAKE_NCCL_CONTROL_H_
