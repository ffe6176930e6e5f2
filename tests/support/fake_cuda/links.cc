#include "tests/support/fake_cuda/links.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/support/fake_cuda/fake_cuda.h"

namespace siphon::fake_cuda {
namespace {

std::string PlaceName(int device) { return device < 0 ? "host" : std::to_string(device); }

}  // namespace

// Never destroyed: streams' threads may outlive static objects.
LinkTimes& LinkTimes::The() {
  static LinkTimes* const times = [] {
    auto* const made = new LinkTimes();
    const char* const text = std::getenv("SIPHON_FAKE_CUDA_LINKS");
    if (text != nullptr && !made->Describe(text)) {
      std::fprintf(stderr, "fake CUDA: SIPHON_FAKE_CUDA_LINKS is no list of links\n");
      std::abort();
    }
    return made;
  }();
  return *times;
}

bool LinkTimes::Describe(const std::string& text) {
  const std::lock_guard lock(mutex_);
  shared_.clear();
  links_.clear();
  latency_ = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return false;
    const std::string name = word.substr(0, equals);
    std::istringstream values(word.substr(equals + 1));
    std::string rate;
    std::getline(values, rate, ',');
    if (name == "latency") {
      latency_ = std::atoll(rate.c_str());
      continue;
    }
    shared_[name].rate = std::strtod(rate.c_str(), nullptr);
    if (shared_[name].rate <= 0) return false;
    if (name.find('>') == std::string::npos) continue;
    std::vector<std::string>& uses = links_[name];
    uses.push_back(name);
    for (std::string shared; std::getline(values, shared, ',');) {
      if (shared_.count(shared) == 0) return false;
      uses.push_back(shared);
    }
  }
  return true;
}

int64_t LinkTimes::Copy(int from, int to, size_t bytes, int64_t ready) {
  const std::lock_guard lock(mutex_);
  ready = std::max(ready, host_time_);
  const auto link = links_.find(PlaceName(from) + ">" + PlaceName(to));
  if (link == links_.end()) return ready;
  int64_t through = ready;
  for (const std::string& name : link->second) {
    Shared& shared = shared_.at(name);
    const auto takes = std::llround(static_cast<double>(bytes) * 1e9 / shared.rate);
    shared.free_at = std::max(shared.free_at, ready) + takes;
    through = std::max(through, shared.free_at);
  }
  return through + latency_;
}

void LinkTimes::HostSaw(int64_t time) {
  const std::lock_guard lock(mutex_);
  host_time_ = std::max(host_time_, time);
}

int64_t LinkTimes::host_time() const {
  const std::lock_guard lock(mutex_);
  return host_time_;
}

}  // namespace siphon::fake_cuda

extern "C" int siphon_fake_cuda_links(const char* text) {
  return siphon::fake_cuda::LinkTimes::The().Describe(text) ? 0 : -1;
}
