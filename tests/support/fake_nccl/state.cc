#include "tests/support/fake_nccl/state.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>

#include "tests/support/fake_nccl/fake_nccl.h"

namespace siphon::fake_nccl {
namespace {

enum class Kind { kSetting, kCounter, kPresence };

struct Value {
  std::atomic<int64_t> State::*value;
  Kind kind = Kind::kCounter;
  int64_t first = 0;
};

const std::map<std::string, Value>& Values() {
  static const auto* const values = new std::map<std::string, Value>{
      {"version", {&State::version, Kind::kSetting, 22809}},
      {"questions", {&State::questions, Kind::kSetting, 2}},
      {"delay_ns", {&State::delay_ns, Kind::kSetting, 0}},
      {"memory", {&State::memory, Kind::kSetting, 64 << 10}},
      {"one_queue", {&State::one_queue, Kind::kSetting, 0}},
      {"fail_group", {&State::fail_group, Kind::kSetting, 0}},
      {"fail_after", {&State::fail_after, Kind::kSetting, 0}},
      {"fail_code", {&State::fail_code, Kind::kSetting, 6}},
      {"groups", {&State::groups}},
      {"sends", {&State::sends}},
      {"receives", {&State::receives}},
      {"aborts", {&State::aborts}},
      {"communicators", {&State::communicators, Kind::kPresence}},
      {"waiting", {&State::waiting, Kind::kPresence}},
  };
  return *values;
}

int64_t FirstValue(const std::string& name, int64_t otherwise) {
  std::string variable = "SIPHON_FAKE_NCCL_" + name;
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  const char* const text = std::getenv(variable.c_str());
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

}  // namespace

void State::Reset() {
  for (const auto& [name, value] : Values()) {
    if (value.kind == Kind::kSetting) this->*value.value = FirstValue(name, value.first);
    if (value.kind == Kind::kCounter) this->*value.value = 0;
  }
}

// Never destroyed: streams' threads may outlive static objects.
State& TheState() {
  static State* const state = [] {
    auto* const made = new State();
    made->Reset();
    return made;
  }();
  return *state;
}

}  // namespace siphon::fake_nccl

using siphon::fake_nccl::TheState;
using siphon::fake_nccl::Values;

extern "C" {

int siphon_fake_nccl_set(const char* name, int64_t value) {
  const auto found = Values().find(name);
  if (found == Values().end() || found->second.kind != siphon::fake_nccl::Kind::kSetting) return -1;
  TheState().*found->second.value = value;
  return 0;
}

int64_t siphon_fake_nccl_get(const char* name) {
  const auto found = Values().find(name);
  return found == Values().end() ? std::numeric_limits<int64_t>::min()
                                 : (TheState().*found->second.value).load();
}

void siphon_fake_nccl_reset() { TheState().Reset(); }

}  // extern "C"
