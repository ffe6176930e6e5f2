#include "pipeline/transport/nccl_options.h"

#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// Of one thread block at one end of a channel: NCCL_BUFFSIZE, 4 MiB, and the smaller buffers of its
// other protocols. Over loopback sockets a device gave 16 MiB for an end of a channel, where this and
// a communicator's are 40; over wires it is not measured yet (tests/gpu).
constexpr Bytes kBytesOfBlock{6 << 20};
// What each communicator takes for itself, whatever it carries. Likewise.
constexpr Bytes kBytesOfCommunicator{16 << 20};

}  // namespace

std::vector<Channel> NcclRecordChannels(const std::vector<Channel>& channels) {
  std::set<Channel> records;
  for (const auto& [from, to, lane] : channels) {
    records.insert({from, to, Lane::kForward});
    records.insert({to, from, Lane::kForward});
  }
  return {records.begin(), records.end()};
}

Bytes NcclMemoryOf(WorkerId worker, const std::vector<Channel>& channels, int max_ctas) {
  Bytes bytes;
  for (const Channel& channel : channels) {
    if (channel.from != worker && channel.to != worker) continue;
    bytes += kBytesOfCommunicator + kBytesOfBlock * max_ctas;
  }
  return bytes;
}

void ShareDeviceWithOtherRanks(int rank) {
  const std::pair<const char*, std::string> variables[] = {
      {"NCCL_HOSTID", absl::StrCat("siphon-rank-", rank)},
      {"NCCL_NET", "Socket"},
      {"NCCL_SOCKET_IFNAME", "lo"},
      {"NCCL_IB_DISABLE", "1"},
      {"NCCL_MNNVL_ENABLE", "0"},
      {"NCCL_NVLS_ENABLE", "0"},
      {"NCCL_MAX_NCHANNELS", "2"},
  };
  for (const auto& [name, value] : variables) setenv(name, value.c_str(), /*overwrite=*/1);
}

}  // namespace siphon
