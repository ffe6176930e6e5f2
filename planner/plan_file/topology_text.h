#ifndef SIPHON_PLANNER_PLAN_FILE_TOPOLOGY_TEXT_H_
#define SIPHON_PLANNER_PLAN_FILE_TOPOLOGY_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "planner/plan_file/plan_words.h"
#include "planner/topology.h"

namespace siphon {

// The lines of the section "topology", each indented. Devices that are alike and links that differ
// only in their target share a line:
//   devices 0 to 3: memory 32GiB, egress 146GB/s, ingress 146GB/s, numa 0
//   links 0 -> 1, 2: rate 24.2GB/s, latency 2us, wires 1
//   switch 0: devices 0 1, to_host 11.7GB/s, from_host 11.7GB/s, latency 9us
//   drive 0: capacity 2TB, read 3GB/s, write 1GB/s, numa 0
std::string TopologyLines(const Topology& topology);

// Reads one of them. Errors: InvalidArgument with the place. Devices stand before links and
// switches, numbers ascend without gaps.
absl::Status ReadTopologyLine(const PlanPair& pair, Topology& topology);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_TOPOLOGY_TEXT_H_
