#ifndef SIPHON_TESTS_SWAP_DEVICE_BACKEND_RIG_H_
#define SIPHON_TESTS_SWAP_DEVICE_BACKEND_RIG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "swap/device/cpu_backend.h"
#include "swap/device/device_backend.h"

namespace siphon {

struct RigBackend {
  int links = 1;
  int64_t chunk = 1 << 20;
  std::optional<DriveLink> drive;
};

// A kind of device backend with the memory that it works on, for suites that run over every kind:
// they are compiled once for each, and linked with its MakeRig.
class BackendRig {
 public:
  virtual ~BackendRig() = default;

  // Links are in whatever order; all but the drive's lead to memory.
  virtual std::unique_ptr<DeviceBackend> MakeBackend(const RigBackend& backend) = 0;
  // Bytes of the worker, of the host, or of a lender, until the rig goes; all zeros. Not for a test
  // to read or write: Write and Read do.
  enum class Where { kWorker, kHost, kLender };
  virtual absl::Span<std::byte> Take(Where where, size_t bytes) = 0;
  // Returns when it is there.
  virtual void Write(absl::Span<std::byte> to, absl::Span<const std::byte> from) = 0;
  virtual std::vector<std::byte> Read(absl::Span<const std::byte> from) = 0;
  // NvmeMoverOptions::copy.
  virtual absl::Status CopyNow(void* to, const void* from, size_t bytes) = 0;

  // The chunk of that number, from 0, fails: of all that the backends that were made later give
  // out. False: this kind cannot be made to fail.
  virtual bool FailChunk(int number) = 0;
  // What the error's text is about then, a regular expression.
  virtual std::string Failure() const = 0;
  // Chunks of backends that were made later take 20 ms or more each. False: it cannot be made slow.
  virtual bool SlowDown() = 0;
  // Faults are over. Before backends and engines that have met one go.
  virtual void Mend() = 0;
};

// "": this kind is here.
std::string WhyNoRig();
std::unique_ptr<BackendRig> MakeRig();

#define SIPHON_SKIP_WITHOUT_RIG()                                         \
  do {                                                                    \
    if (const std::string siphon_why = WhyNoRig(); !siphon_why.empty()) { \
      GTEST_SKIP() << "skipped, because " << siphon_why;                  \
    }                                                                     \
  } while (false)

// Every byte depends on the seed.
std::vector<std::byte> RigPattern(size_t bytes, uint64_t seed);

}  // namespace siphon

#endif  // SIPHON_TESTS_SWAP_DEVICE_BACKEND_RIG_H_
