#ifndef SIPHON_LAUNCH_TOPOLOGY_CALIBRATE_LINKS_H_
#define SIPHON_LAUNCH_TOPOLOGY_CALIBRATE_LINKS_H_

#include <vector>

#include "absl/status/status.h"
#include "launch/topology/server_facts.h"
#include "planner/units.h"
#include "swap/device/cuda_module.h"

namespace siphon {

struct CalibrationSizes {
  Bytes bytes{64 << 20};  // of each copy
  int chunks = 16;        // in which it goes
  int rounds = 5;         // the median counts
};

// Measures what `facts` know no rates of, and fills in their keys:
// - each pair that reaches one another, by NVLinks, within a PCIe switch or across root ports, by
//   pushes and pulls; a link is as fast as the slower of the two. Whether it is worth anything
//   beside the way through the host is the planner's to say (SwapFabric). A pair without NVLinks
//   whose copies fail has no link, and a note
// - all that a device sends to, and gets from, its peers at once, where it has several: by NVLinks
//   where the server has any
// - each device to and from the host, alone and both at once; all devices of a switch likewise
// - the time of a tiny copy, as latency
// Rates of links of a kind that differ by less than 5 % are taken to be equal: otherwise noise
// would make every device another one, and searches could use no symmetry.
// Errors: as CudaModule::RunTrial.
absl::Status CalibrateLinks(const CudaModule& module, const CalibrationSizes& sizes,
                            ServerFacts* facts);

// Rates within 5 % of the least of a group become the group's median, to three digits.
void EvenOut(std::vector<BytesPerSecond*> rates);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_CALIBRATE_LINKS_H_
