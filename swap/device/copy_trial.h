#ifndef SIPHON_SWAP_DEVICE_COPY_TRIAL_H_
#define SIPHON_SWAP_DEVICE_COPY_TRIAL_H_

#include <optional>
#include <vector>

#include "planner/units.h"

namespace siphon {

// Copies that are timed while they run beside one another; no CUDA in here.

// Devices are numbers among the visible ones; none: locked memory of the host.
struct CopyPath {
  std::optional<int> from;
  std::optional<int> to;
  int issuer = 0;  // on whose copy engines it runs: a push by `from`, a pull by `to`
  friend bool operator==(const CopyPath&, const CopyPath&) = default;
};

struct CopyTrial {
  std::vector<CopyPath> paths;   // all at once
  Bytes bytes;                   // of each path
  Bytes chunk;                   // in which it is given to its stream, paths by turns
  int rounds = 5;                // the median counts
  std::optional<int> host_node;  // NUMA node of the host's memory; none: the thread's
};

// When each chunk of a path was there, after the first chunk of all could begin.
using ChunkTimes = std::vector<Nanos>;

// How long a path took for how much, while all paths of its trial ran: until the first one was
// through. A path that got nothing in that time has no bytes.
struct CopyFigure {
  Bytes bytes;
  Nanos time;
};

// Bytes a second; 0 for no bytes.
BytesPerSecond RateOf(const CopyFigure& figure);

// Of one round; times[path][chunk], ascending. A chunk that was not through counts by its share of
// the time, where it took as long as the path's fastest chunk: copies that wait behind others on
// one engine have not begun.
std::vector<CopyFigure> FiguresOf(const std::vector<ChunkTimes>& times, Bytes chunk);

// The median of rounds, for each path by its rate. Requires: rounds, each with all paths.
std::vector<CopyFigure> MedianFigures(const std::vector<std::vector<CopyFigure>>& rounds);

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_COPY_TRIAL_H_
