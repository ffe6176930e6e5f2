#include "swap/device/cuda_options.h"

#include <algorithm>

namespace siphon {

CudaBackendOptions OptionsForLenders(int device, int lenders, PeerEngines engines) {
  CudaBackendOptions options;
  options.device = device;
  options.way_of_link = {0};
  const int peer_ways = engines == PeerEngines::kOneEach ? lenders : std::min(lenders, 1);
  options.ways.resize(1 + static_cast<size_t>(peer_ways));
  for (int lender = 0; lender < lenders; ++lender) {
    options.way_of_link.push_back(engines == PeerEngines::kOneEach ? 1 + lender : 1);
  }
  // Peers are 5 to 10 times as fast as the host: as much time in a chunk.
  for (size_t way = 1; way < options.ways.size(); ++way) options.ways[way].chunk = Bytes(32 << 20);
  return options;
}

}  // namespace siphon
