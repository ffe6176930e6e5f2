#ifndef SIPHON_LAUNCH_RUN_SEAT_COORDINATE_H_
#define SIPHON_LAUNCH_RUN_SEAT_COORDINATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/transport/transport.h"

namespace siphon {

// What workers tell each other outside a step, all of it collective over the control lane: every
// worker calls the same function at the same point.
class Coordinator {
 public:
  Coordinator(Transport* transport, WorkerId me, int workers)
      : transport_(transport), me_(me), workers_(workers) {}

  WorkerId me() const { return me_; }
  int workers() const { return workers_; }

  // Every worker's text on every worker.
  absl::StatusOr<std::vector<std::string>> GatherText(const std::string& mine);
  // Every worker's record; a plain struct of fixed size.
  template <typename Record>
  absl::StatusOr<std::vector<Record>> Gather(const Record& mine) {
    static_assert(std::is_trivially_copyable_v<Record>);
    std::vector<Record> all(workers_);
    absl::Status status = GatherBytes(&mine, all.data(), sizeof(Record));
    if (!status.ok()) return status;
    return all;
  }
  // OK if every worker is; else, on all of them, the first worker's that is not, after "worker N:
  // ". CulpritOf() tells which one that is.
  absl::Status Agree(const absl::Status& mine);

 private:
  absl::Status GatherBytes(const void* mine, void* all, int64_t bytes_each);

  Transport* transport_;
  WorkerId me_;
  int workers_;
};

// The worker whose failure made workers disagree; nothing if `status` does not come from Agree().
std::optional<int> CulpritOf(const absl::Status& status);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SEAT_COORDINATE_H_
