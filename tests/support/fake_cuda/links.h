#ifndef SIPHON_TESTS_SUPPORT_FAKE_CUDA_LINKS_H_
#define SIPHON_TESTS_SUPPORT_FAKE_CUDA_LINKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace siphon::fake_cuda {

// What copies take on links of a made-up server, in a time of its own that only events tell: no
// copy is held up for it, so that figures are exact however busy the machine is. A call's place in
// that time is settled when it is made, in the order of the host's calls.
//
// A copy takes its link and all that it shares with others, one copy after the other on each, as
// chunks on engines and buses do. Places that are not described take no time.
//
// Thread-safety: any thread.
class LinkTimes {
 public:
  static LinkTimes& The();

  // Words: "up=14e9" is something that links share; "0>1=24e9,up" is a link of that rate which
  // does; "0>host=12e9"; "latency=2000" (ns) is added to each copy. False: something else stands
  // there. Empty: no link is described.
  bool Describe(const std::string& text);

  // When a copy is through that may begin at `ready`. A negative device: the host.
  int64_t Copy(int from, int to, size_t bytes, int64_t ready);
  // The host has waited until then: what it starts from now on cannot begin before.
  void HostSaw(int64_t time);
  int64_t host_time() const;

 private:
  struct Shared {
    double rate = 0;
    int64_t free_at = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Shared> shared_;
  std::map<std::string, std::vector<std::string>> links_;  // their names in shared_
  int64_t latency_ = 0;
  int64_t host_time_ = 0;
};

}  // namespace siphon::fake_cuda

#endif  // SIPHON_TESTS_SUPPORT_FAKE_CUDA_LINKS_H_
