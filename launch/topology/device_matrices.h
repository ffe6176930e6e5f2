#ifndef SIPHON_LAUNCH_TOPOLOGY_DEVICE_MATRICES_H_
#define SIPHON_LAUNCH_TOPOLOGY_DEVICE_MATRICES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/config/config_tree.h"
#include "launch/topology/pcie_path.h"

namespace siphon {

// Matrices of a topology file: a row and a column for each of its devices. Errors: InvalidArgument
// with the place of the first cell, row or matrix that is not right.

// 'wires': direct ones of each pair, the same both ways, none of a device to itself.
absl::StatusOr<std::vector<std::vector<int64_t>>> ReadWireMatrix(absl::string_view file,
                                                                 const ConfigNode& node,
                                                                 int64_t devices);
// 'pcie_paths': the words of `nvidia-smi topo -m`, likewise.
absl::StatusOr<PciePaths> ReadPathMatrix(absl::string_view file, const ConfigNode& node,
                                         int64_t devices);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_DEVICE_MATRICES_H_
