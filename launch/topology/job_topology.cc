#include "launch/topology/job_topology.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launch/config/value_rules.h"
#include "launch/topology/server_file.h"
#include "launch/topology/topology_file.h"
#include "planner/status.h"

namespace siphon {
namespace {

// A file of any kind. What other programs tell of a server lacks the devices' memory unless their
// kind stands in it.
absl::StatusOr<Topology> TopologyInFile(const JobConfig& job, const std::string& path) {
  SIPHON_ASSIGN_OR_RETURN(DiscoveredTopology server, LoadServer(path));
  const bool needs_memory = !server.yaml.empty() && job.memory.capacity.empty();
  if (!needs_memory || server.topology.devices.front().memory > Bytes(0)) {
    return std::move(server.topology);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      ": does not tell the devices' memory; write memory.capacity, or make a topology file "
      "of it by siphon topology, whose --device names their kind"));
}

// Bytes a second, 1 EB/s: exact as a double, and far from the end of 63 bits.
constexpr double kFastest = 1e18;

}  // namespace

absl::StatusOr<std::optional<Topology>> LoadJobTopology(const JobConfig& job) {
  const std::string& name = job.topology.name;
  if (job.topology.source == "probe") {
    return ConfigError(job, "topology.source",
                       "is probe, which siphon train and siphon plan measure; here a file works, "
                       "which siphon topology --probe --output FILE writes");
  }
  if (name.empty()) return std::nullopt;
  absl::StatusOr<Topology> topology =
      job.topology.source == "file" ? TopologyInFile(job, name) : FindTopologyPreset(name);
  if (!topology.ok()) {
    // Presets are names, so a path is meant as one.
    const bool is_path = job.topology.source != "file" && absl::StrContains(name, '/');
    return ConfigError(job, "topology.name",
                       absl::StrCat(topology.status().message(),
                                    is_path ? "; a file is read with topology.source: file" : ""));
  }
  return std::optional<Topology>(
      SeveralServers(*topology, static_cast<int>(job.topology.servers),
                     {job.topology.network_rate, job.topology.network_latency}));
}

namespace {

// Rates of a topology are to be changed all alike.
template <typename Change>
void ChangeRates(Topology& topology, const Change& change) {
  for (TopologyDevice& device : topology.devices) {
    change(device.egress);
    change(device.ingress);
  }
  for (TopologyLink& link : topology.links) change(link.rate);
  for (PcieSwitch& uplink : topology.switches) {
    change(uplink.to_host);
    change(uplink.from_host);
    change(uplink.to_host_both);
    change(uplink.from_host_both);
  }
  for (NvmeDrive& drive : topology.drives) {
    change(drive.read);
    change(drive.write);
  }
  change(topology.nominal_wire_rate);
}

}  // namespace

absl::StatusOr<std::optional<Topology>> LoadThrottledTopology(const JobConfig& job) {
  const std::optional<double> scale = ScaleOf(job.topology.throttle);
  if (!scale.has_value()) return std::nullopt;
  SIPHON_ASSIGN_OR_RETURN(std::optional<Topology> topology, LoadJobTopology(job));
  if (!topology.has_value()) {
    return ConfigError(job, "topology.throttle",
                       "needs links to hold to their rates; write topology.name");
  }
  bool stands = false;
  const auto slower = [&](BytesPerSecond& rate) {
    if (rate == BytesPerSecond(0)) return;  // no limit is known
    // Faster than the largest rate there is would be no number.
    const double scaled = std::min(static_cast<double>(rate.value) * *scale, kFastest);
    rate = BytesPerSecond(static_cast<int64_t>(scaled));
    stands = stands || rate == BytesPerSecond(0);
  };
  ChangeRates(*topology, slower);
  if (!stands) return topology;
  return ConfigError(job, "topology.throttle",
                     absl::StrCat(job.topology.throttle, " leaves links of ", job.topology.name,
                                  " less than a byte a second; write more"));
}

}  // namespace siphon
