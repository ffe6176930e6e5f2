#ifndef SIPHON_PLANNER_BOUNDS_SWAP_LIMITS_H_
#define SIPHON_PLANNER_BOUNDS_SWAP_LIMITS_H_

#include <string>
#include <vector>

#include "planner/drafts/planning_problem.h"
#include "planner/units.h"

namespace siphon {

// In this folder a rate or size of 0 means "no way" or "nothing", and "no limit" is one of these,
// which no sum of real ones comes near.
inline constexpr BytesPerSecond kUnlimitedRate{int64_t{1} << 61};
inline constexpr Bytes kUnlimitedBytes{int64_t{1} << 61};

// The two directions of a way to the host, while the other one rests and while both run.
struct UplinkRates {
  BytesPerSecond out_alone;
  BytesPerSecond in_alone;
  BytesPerSecond out_both;
  BytesPerSecond in_both;
  friend bool operator==(const UplinkRates&, const UplinkRates&) = default;
};

// The most that the direction can ever carry.
BytesPerSecond FastestOut(const UplinkRates& uplink);
BytesPerSecond FastestIn(const UplinkRates& uplink);
// Of each rate the larger one.
UplinkRates Better(const UplinkRates& a, const UplinkRates& b);

// Uplinks that carry all that some workers send to the host and get from it.
struct SharedUplinks {
  std::string name;  // "the uplink of switch 1"
  std::vector<int> workers;
  std::vector<UplinkRates> uplinks;
  friend bool operator==(const SharedUplinks&, const SharedUplinks&) = default;
};

bool Shares(const SharedUplinks& shared, int worker);

// How fast the fastest message of one byte or more can be: its bytes at `rate`, behind `latency`.
struct MessageWay {
  Nanos latency;
  BytesPerSecond rate;
  friend bool operator==(const MessageWay&, const MessageWay&) = default;
};

// What no device map can exceed: of the problem's map where it has one, else the best over all
// devices, for each figure on its own. Workers of replicas follow one after the other.
struct SwapLimits {
  // [worker]: to other devices with a link of their own, at least one way, and back.
  std::vector<BytesPerSecond> link_out;
  std::vector<BytesPerSecond> link_in;
  std::vector<UplinkRates> uplink;  // [worker]: 0 without a way to the host
  std::vector<SharedUplinks> shared;
  // Memory of devices without a worker, which may lend all of it.
  Bytes idle_memory;
  // [from][to]: ways of a message between two workers.
  std::vector<std::vector<std::vector<MessageWay>>> ways;
};

// Requires: the topology passes CheckTopology and has a device for each worker (or none at all);
// a map names each device once at most. O(workers^2 + links * devices).
SwapLimits SwapLimitsOf(const PlanningProblem& problem);

// The least time of a message: over the fastest of its ways, rounded down. 0 without ways.
Nanos LeastMessageTime(const std::vector<MessageWay>& ways, Bytes bytes);

// bytes / rate, rounded down. Requires: rate > 0.
Nanos TimeToMove(Bytes bytes, BytesPerSecond rate);
// rate * time, rounded down; kUnlimitedBytes at most.
Bytes BytesMoved(BytesPerSecond rate, Nanos time);
// What several uplinks carry out and back, each at its slower direction; likewise.
Bytes BytesMoved(const std::vector<UplinkRates>& uplinks, Nanos time);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_SWAP_LIMITS_H_
