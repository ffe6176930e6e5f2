#include "tests/support/fake_cuda/state.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>

#include "tests/support/fake_cuda/fake_cuda.h"

namespace siphon::fake_cuda {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

struct Setting {
  std::atomic<int64_t> State::*value;
  int64_t first;
};

const std::map<std::string, Setting>& Settings() {
  static const auto* const settings = new std::map<std::string, Setting>{
      {"devices", {&State::devices, 2}},
      {"memory", {&State::memory, int64_t{1} << 30}},
      {"rate", {&State::rate, 0}},
      {"delay_ns", {&State::delay_ns, 0}},
      {"fail_copy", {&State::fail_copy, 0}},
      {"fail_code", {&State::fail_code, 700}},
      {"fail_least", {&State::fail_least, 0}},
      {"fail_start", {&State::fail_start, 0}},
      {"fail_record", {&State::fail_record, 0}},
      {"fail_open", {&State::fail_open, 0}},
      {"apart", {&State::apart, -1}},
  };
  return *settings;
}

// `is_kept`: says what there is, not what has been.
struct Counter {
  std::atomic<int64_t> State::*value;
  bool is_kept;
};

const std::map<std::string, Counter>& Counters() {
  static const auto* const counters = new std::map<std::string, Counter>{
      {"copies", {&State::copies, false}},
      {"opens", {&State::opens, false}},
      {"counted", {&State::counted, false}},
      {"starts", {&State::starts, false}},
      {"records", {&State::records, false}},
      {"pageable", {&State::pageable, false}},
      {"most_queued", {&State::most_queued, false}},
      {"freed_while_opened", {&State::freed_while_opened, false}},
      {"opened", {&State::opened, true}},
      {"streams", {&State::streams, true}},
      {"events", {&State::events, true}},
      {"kernels", {&State::kernels, false}},
      {"allocations", {&State::allocations, true}},
      {"contexts", {&State::contexts, false}},
      {"locked", {&State::locked, true}},
      {"most_locked", {&State::most_locked, false}},
  };
  return *counters;
}

int64_t FirstValue(const std::string& name, int64_t otherwise) {
  std::string variable = "SIPHON_FAKE_CUDA_" + name;
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  const char* const text = std::getenv(variable.c_str());
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

}  // namespace

void State::Reset() {
  for (const auto& [name, setting] : Settings())
    (this->*setting.value) = FirstValue(name, setting.first);
  for (const auto& [name, counter] : Counters()) {
    if (!counter.is_kept) this->*counter.value = 0;
  }
  sticky = cudaSuccess;
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

cudaError_t Finish(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t TakeLastError() {
  const cudaError_t taken = LastError();
  last_error = cudaSuccess;
  return taken;
}

// An error that sticks cannot be taken.
cudaError_t LastError() {
  const auto sticky = static_cast<cudaError_t>(TheState().sticky.load());
  return sticky != cudaSuccess ? sticky : last_error;
}

cudaError_t StandingError() {
  const State& state = TheState();
  if (state.devices < 0) return cudaErrorInsufficientDriver;
  if (state.devices == 0) return cudaErrorNoDevice;
  return static_cast<cudaError_t>(state.sticky.load());
}

int& CurrentDevice() { return current_device; }

bool IsDevice(int device) { return device >= 0 && device < TheState().devices; }

bool AreTogether(int device, int peer) {
  const int64_t apart = TheState().apart;
  return device == peer || (device != apart && peer != apart);
}

}  // namespace siphon::fake_cuda

using siphon::fake_cuda::Counters;
using siphon::fake_cuda::Settings;
using siphon::fake_cuda::TheState;

extern "C" {

int siphon_fake_cuda_set(const char* name, int64_t value) {
  const auto found = Settings().find(name);
  if (found == Settings().end()) return -1;
  TheState().*found->second.value = value;
  return 0;
}

int64_t siphon_fake_cuda_get(const char* name) {
  if (const auto found = Settings().find(name); found != Settings().end()) {
    return TheState().*found->second.value;
  }
  const auto found = Counters().find(name);
  return found == Counters().end() ? std::numeric_limits<int64_t>::min()
                                   : (TheState().*found->second.value).load();
}

void siphon_fake_cuda_reset() { TheState().Reset(); }

}  // extern "C"
