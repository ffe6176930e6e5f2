#ifndef SIPHON_PIPELINE_TRANSPORT_NCCL_RECORDS_H_
#define SIPHON_PIPELINE_TRANSPORT_NCCL_RECORDS_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "pipeline/transport/message_sizes.h"
#include "pipeline/transport/transport.h"

namespace siphon {

// What two workers tell each other about messages over NCCL, on the host: NCCL itself neither says
// that sizes differ nor that a peer has begun. Plain data, passed as it is.
struct NcclRecord {
  enum class Kind : int64_t { kStarted = 1, kRefused = 2 };
  static constexpr int kPartsNamed = 8;

  Kind kind = Kind::kStarted;
  int64_t lane = 0;
  int64_t number = 0;  // of the message on its channel, from 0
  int64_t parts = 0;
  int64_t bytes = 0;
  uint64_t hash = 0;                // of all sizes
  int64_t first[kPartsNamed] = {};  // sizes
};

NcclRecord RecordOf(NcclRecord::Kind kind, Lane lane, int64_t number, const MessageSizes& sizes);
// Whether it names a message of these sizes.
bool HasSizes(const NcclRecord& record, const MessageSizes& sizes);
// FailedPrecondition that names the channel and both sizes.
absl::Status SizeMismatch(const Channel& channel, const NcclRecord& sent,
                          const MessageSizes& expected);

// Records to and from some peers over a transport of the host, on its forward lane, in order.
//
// Thread-safety: as the transport. Requires: the transport is destroyed first.
class NcclRecords {
 public:
  NcclRecords(Transport* host, WorkerId me) : host_(host), me_(me) {}
  // Starts to listen to a peer. Errors: those of the transport, as below.
  absl::Status Listen(WorkerId peer);
  absl::Status Send(WorkerId to, const NcclRecord& record);
  // Hands over all that has come, and makes progress on what was sent.
  absl::Status Poll(const std::function<void(WorkerId from, const NcclRecord& record)>& take);

 private:
  struct Outgoing {
    NcclRecord record;
    TransferId transfer;
  };
  struct Incoming {
    NcclRecord record;
    TransferId transfer;
  };
  absl::Status StartReceive(WorkerId from, Incoming& incoming);

  Transport* const host_;
  const WorkerId me_;
  std::list<Outgoing> outgoing_;  // where they are until they are done
  std::map<WorkerId, Incoming> incoming_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_NCCL_RECORDS_H_
