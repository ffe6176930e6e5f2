#ifndef SIPHON_TESTS_SUPPORT_FAKE_CUDA_FAKE_CONTROL_H_
#define SIPHON_TESTS_SUPPORT_FAKE_CUDA_FAKE_CONTROL_H_

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "planner/status.h"
#include "tests/support/fake_cuda/other_fakes.h"

namespace siphon {

// The fake CUDA runtime (fake_cuda.h), for tests that may also run on the real one.
class FakeCuda {
 public:
  // Whether the runtime of this process is the fake.
  static bool IsThere() { return Find("siphon_fake_cuda_reset") != nullptr; }
  // Whether the real runtime is wanted: SIPHON_GPU=1.
  static bool IsGpuWanted() {
    const char* const wanted = std::getenv("SIPHON_GPU");
    return wanted != nullptr && std::string(wanted) == "1";
  }

  // Requires: it is there, and knows the name.
  static void Set(const char* name, int64_t value) {
    const auto set = reinterpret_cast<int (*)(const char*, int64_t)>(Find("siphon_fake_cuda_set"));
    SIPHON_CHECK(set != nullptr && set(name, value) == 0, "the fake knows what is set");
  }
  static int64_t Get(const char* name) {
    const auto get = reinterpret_cast<int64_t (*)(const char*)>(Find("siphon_fake_cuda_get"));
    SIPHON_CHECK(get != nullptr && get(name) != INT64_MIN, "the fake knows what is asked for");
    return get(name);
  }
  static void SetLinks(const char* text) {
    const auto set = reinterpret_cast<int (*)(const char*)>(Find("siphon_fake_cuda_links"));
    SIPHON_CHECK(set != nullptr && set(text) == 0, "the fake understands what links there are");
  }
  static void Reset() { reinterpret_cast<void (*)()>(Find("siphon_fake_cuda_reset"))(); }
  // All of a device but so many bytes, as another process's that computes there; a number for
  // GiveBack. Requires: there is more.
  static int64_t TakeAllBut(int64_t left, int device) {
    const auto take =
        reinterpret_cast<decltype(&siphon_fake_cuda_take)>(Find("siphon_fake_cuda_take"));
    const int64_t taken = take(device, Get("memory") - left);
    SIPHON_CHECK(taken != 0, "the fake has that much");
    return taken;
  }
  static void GiveBack(int64_t taken) {
    reinterpret_cast<decltype(&siphon_fake_cuda_give_back)>(Find("siphon_fake_cuda_give_back"))(
        taken);
  }
  static std::string Directory() {
    return reinterpret_cast<const char* (*)()>(Find("siphon_fake_cuda_directory"))();
  }

 private:
  static void* Find(const char* name) { return dlsym(RTLD_DEFAULT, name); }
};

}  // namespace siphon

#endif  // SIPHON_TESTS_SUPPORT_FAKE_CUDA_FAKE_CONTROL_H_
