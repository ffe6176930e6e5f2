#include "launch/topology/device_matrices.h"

#include <cstddef>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "launch/config/config_map.h"
#include "launch/topology/topology_values.h"
#include "planner/status.h"

namespace siphon {
namespace {

using WireMatrix = std::vector<std::vector<int64_t>>;
// `where` names the cell in messages.
using ReadCell = absl::FunctionRef<absl::Status(size_t from, size_t to, const ConfigNode& cell,
                                                absl::string_view where)>;

// `what` is in the cells.
absl::Status ReadMatrix(absl::string_view file, const ConfigNode& node, absl::string_view name,
                        absl::string_view what, int64_t devices, ReadCell read) {
  SIPHON_RETURN_IF_ERROR(ReadListOf(file, node, name, "rows, one for each device"));
  if (static_cast<int64_t>(node.items.size()) != devices) {
    return ConfigErrorAt(file, node,
                         absl::StrCat(name, ": has ", node.items.size(), " rows for ", devices,
                                      " devices; write one for each"));
  }
  for (size_t from = 0; from < node.items.size(); ++from) {
    const ConfigNode& row = node.items[from];
    const std::string where = absl::StrCat(name, ": row ", from);
    SIPHON_RETURN_IF_ERROR(
        ReadListOf(file, row, where, absl::StrCat(what, ", one for each device")));
    if (static_cast<int64_t>(row.items.size()) != devices) {
      return ConfigErrorAt(file, row,
                           absl::StrCat(where, " has ", row.items.size(), " ", what, " for ",
                                        devices, " devices; write one for each"));
    }
    for (size_t to = 0; to < row.items.size(); ++to) {
      SIPHON_RETURN_IF_ERROR(read(from, to, row.items[to], absl::StrCat(where, ", column ", to)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWires(absl::string_view file, const ConfigNode& matrix, const WireMatrix& wires) {
  for (size_t from = 0; from < wires.size(); ++from) {
    for (size_t to = 0; to <= from; ++to) {
      const int64_t here = wires[from][to];
      const int64_t there = wires[to][from];
      const ConfigNode& place = matrix.items[from].items[to];
      if (from == to && here != 0) {
        return ConfigErrorAt(file, place,
                             absl::StrCat("wires: row ", from, ", column ", to, ": is ", here,
                                          "; a device has no wires to itself, write 0"));
      }
      if (here != there) {
        return ConfigErrorAt(
            file, place,
            absl::StrCat("wires: row ", from, ", column ", to, ": is ", here, ", but row ", to,
                         ", column ", from, " is ", there,
                         "; a wire runs both ways, so they must be equal (rates that "
                         "differ by direction go under 'links')"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WireMatrix> ReadWireMatrix(absl::string_view file, const ConfigNode& node,
                                          int64_t devices) {
  const auto size = static_cast<size_t>(devices);
  WireMatrix wires(size, std::vector<int64_t>(size));
  SIPHON_RETURN_IF_ERROR(
      ReadMatrix(file, node, "wires", "numbers", devices,
                 [&](size_t from, size_t to, const ConfigNode& cell, absl::string_view where) {
                   return ReadCount(file, cell, where, 0, kMostWires, wires[from][to]);
                 }));
  SIPHON_RETURN_IF_ERROR(CheckWires(file, node, wires));
  return wires;
}

absl::StatusOr<PciePaths> ReadPathMatrix(absl::string_view file, const ConfigNode& node,
                                         int64_t devices) {
  const auto size = static_cast<size_t>(devices);
  PciePaths paths(size, std::vector<PciePath>(size, PciePath::kUnknown));
  SIPHON_RETURN_IF_ERROR(ReadMatrix(
      file, node, "pcie_paths", "words", devices,
      [&](size_t from, size_t to, const ConfigNode& cell, absl::string_view where) {
        const std::optional<PciePath> known = FindPciePath(cell.text);
        if (from == to && cell.text != "X") {
          return ConfigErrorAt(file, cell,
                               absl::StrCat(where, ": is ", Describe(cell),
                                            "; a device has no path to itself, write X"));
        }
        if (from != to && !known.has_value() && cell.text != kUnknownPath) {
          return ConfigErrorAt(file, cell,
                               absl::StrCat(where, ": is ", Describe(cell),
                                            "; write PIX, PXB, PHB, NODE, SYS or ", kUnknownPath));
        }
        paths[from][to] = known.value_or(PciePath::kUnknown);
        if (from <= to || paths[from][to] == paths[to][from]) return absl::OkStatus();
        return ConfigErrorAt(file, cell,
                             absl::StrCat(where, ": is ", cell.text, ", but row ", to, ", column ",
                                          from, " is another; paths are the same both ways"));
      }));
  return paths;
}

}  // namespace siphon
