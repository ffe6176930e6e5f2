#ifndef SIPHON_PIPELINE_TRANSPORT_ALL_GATHER_H_
#define SIPHON_PIPELINE_TRANSPORT_ALL_GATHER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/transport/transport.h"

namespace siphon {

// Every worker's bytes on every worker, in worker order: over the control lane, collected by worker
// 0 and handed back. `sizes[w]` is what worker w contributes and is known to all. Blocks until all
// have called it: a barrier. Requires: channels (w -> 0, control) and (0 -> w, control) for every w
// > 0; mine.size() == sizes[me].
absl::StatusOr<std::vector<std::vector<std::byte>>> AllGather(Transport& transport, WorkerId me,
                                                              const std::vector<int64_t>& sizes,
                                                              ConstPart mine);

// The channels that AllGather needs among `workers` workers.
std::vector<Channel> AllGatherChannels(int workers);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_ALL_GATHER_H_
