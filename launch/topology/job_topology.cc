#include "launch/topology/job_topology.h"

#include <utility>

#include "launch/topology/topology_file.h"

namespace siphon {

absl::StatusOr<std::optional<Topology>> LoadJobTopology(const JobConfig& job) {
  const std::string& name = job.topology.name;
  if (name.empty()) return std::nullopt;
  absl::StatusOr<Topology> topology =
      job.topology.source == "file" ? LoadTopology(name) : FindTopologyPreset(name);
  if (!topology.ok()) return ConfigError(job, "topology.name", topology.status().message());
  return std::optional<Topology>(*std::move(topology));
}

}  // namespace siphon
