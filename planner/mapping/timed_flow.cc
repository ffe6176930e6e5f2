#include "planner/mapping/timed_flow.h"

#include <algorithm>
#include <limits>

#include "absl/numeric/int128.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr int64_t kNoTime = std::numeric_limits<int64_t>::max();  // rate: needs none

}  // namespace

TimedFlow::TimedFlow(int nodes, Bytes granule)
    : granule_(absl::uint128(kNanosPerSecond) * absl::uint128(granule.value)),
      first_(nodes, kNone),
      last_(nodes, kNone),
      level_(nodes),
      coming_(nodes) {
  SIPHON_CHECK(nodes >= 2 && granule > Bytes(0), "a network has a source, a sink and a granule");
}

int TimedFlow::Add(int from, int to, const Arc& arc) {
  const auto number = static_cast<int>(arcs_.size());
  arcs_.push_back(arc);
  arcs_.back().full = granule_ * (absl::uint128(arc.limit) + 1);
  arcs_.push_back({.to = from});
  Append(from, number);
  Append(to, number + 1);
  return number / 2;
}

void TimedFlow::Append(int node, int arc) {
  int& last = last_[node];
  (last == kNone ? first_[node] : arcs_[last].next) = arc;
  last = arc;
}

int TimedFlow::AddArc(int from, int to, int64_t limit, int64_t rate) {
  return Add(from, to, {.to = to, .limit = limit, .rate = rate});
}

int TimedFlow::AddGate(int from, int to, int64_t limit, Nanos opens) {
  return Add(from, to, {.to = to, .limit = limit, .rate = kNoTime, .opens = opens});
}

void TimedFlow::FixArc(int arc, Nanos time) {
  const int64_t capacity = Capacity(arc, time);
  Arc& fixed = arcs_[static_cast<size_t>(arc) * 2];
  fixed = {.to = fixed.to, .limit = capacity, .rate = kNoTime, .next = fixed.next};
}

int64_t TimedFlow::Capacity(int arc, Nanos time) const {
  const Arc& wanted = Forward(arc);
  if (time >= kLongest) return wanted.limit;
  if (time < wanted.opens) return 0;
  if (wanted.rate == kNoTime) return wanted.limit;
  const absl::uint128 moved = absl::uint128(wanted.rate) * absl::uint128(time.value);
  // Most arcs carry all they can, and a division takes ten times as long as this.
  if (moved >= wanted.full) return wanted.limit;
  return static_cast<int64_t>(moved / granule_);
}

int64_t TimedFlow::Flow(int arc) const { return Reverse(arc).left; }

void TimedFlow::Reset(Nanos time) {
  for (size_t arc = 0; arc < arcs_.size(); arc += 2) {
    arcs_[arc].left = Capacity(static_cast<int>(arc / 2), time);
    arcs_[arc + 1].left = 0;
  }
}

// More time, with the flow that is there.
void TimedFlow::Widen(Nanos time) {
  for (size_t arc = 0; arc < arcs_.size(); arc += 2) {
    arcs_[arc].left = Capacity(static_cast<int>(arc / 2), time) - arcs_[arc + 1].left;
  }
}

// Breadth first, over arcs that can carry more. Is the sink reached?
bool TimedFlow::Level() {
  std::fill(level_.begin(), level_.end(), -1);
  level_[kSource] = 0;
  queue_.assign(1, kSource);
  for (size_t head = 0; head < queue_.size(); ++head) {
    const int node = queue_[head];
    for (int number = first_[node]; number != kNone; number = arcs_[number].next) {
      const Arc& arc = arcs_[number];
      if (arc.left == 0 || level_[arc.to] >= 0) continue;
      level_[arc.to] = level_[node] + 1;
      queue_.push_back(arc.to);
    }
  }
  return level_[kSink] >= 0;
}

int64_t TimedFlow::Push(int node, int64_t most) {
  if (node == kSink || most == 0) return most;
  int64_t pushed = 0;
  for (int& number = coming_[node]; number != kNone; number = arcs_[number].next) {
    Arc& arc = arcs_[number];
    if (arc.left == 0 || level_[arc.to] != level_[node] + 1) continue;
    const int64_t carried = Push(arc.to, std::min(most - pushed, arc.left));
    arc.left -= carried;
    arcs_[number ^ 1].left += carried;
    pushed += carried;
    if (pushed == most) return pushed;
  }
  return pushed;
}

// Dinic (1970). Returns what was added; level_ is then a minimum cut.
int64_t TimedFlow::Augment() {
  int64_t added = 0;
  while (Level()) {
    coming_ = first_;
    added += Push(kSource, kNoLimit);
  }
  return added;
}

int64_t TimedFlow::MostFlow() {
  Reset(kLongest);
  return Augment();
}

std::vector<bool> TimedFlow::SourceSideAt(Nanos time) {
  Reset(time);
  Augment();
  std::vector<bool> side;
  for (const int level : level_) side.push_back(level >= 0);
  return side;
}

int64_t TimedFlow::CutCapacity(Nanos time) const {
  absl::int128 capacity = 0;
  for (const int arc : cut_) capacity += Capacity(arc, time);
  return capacity > kNoLimit ? kNoLimit : static_cast<int64_t>(capacity);
}

// The cut lets through at most what its arcs that are open and below their limit would carry if
// they had none, plus the limits of the others, until a gate opens. No time below the result is
// enough.
Nanos TimedFlow::TangentOfCut(Nanos time, int64_t target) const {
  absl::int128 missing = target;
  absl::int128 rate = 0;
  int64_t earliest = kLongest.value;
  for (const int number : cut_) {
    const Arc& arc = Forward(number);
    const int64_t capacity = Capacity(number, time);
    if (time < arc.opens) {
      earliest = std::min(earliest, arc.opens.value);
    } else if (capacity == arc.limit) {
      missing -= capacity;
    } else {
      rate += arc.rate;
    }
  }
  if (rate == 0) return Nanos(earliest);
  const absl::int128 needed = (missing * static_cast<absl::int128>(granule_) + rate - 1) / rate;
  return Nanos(needed > earliest ? earliest : static_cast<int64_t>(needed));
}

// The least time above `time` in which the cut lets `target` through.
Nanos TimedFlow::NextTime(Nanos time, int64_t target) const {
  Nanos high = std::max(TangentOfCut(time, target), time + Nanos(1));
  if (CutCapacity(high) >= target) return high;
  Nanos low = high;
  for (int64_t step = 1; CutCapacity(high) < target; step *= 2) {
    low = high;
    high = high.value > kLongest.value - step ? kLongest : high + Nanos(step);
  }
  while (high.value - low.value > 1) {
    const Nanos middle(low.value + (high.value - low.value) / 2);
    (CutCapacity(middle) >= target ? high : low) = middle;
  }
  return high;
}

Nanos TimedFlow::LeastTime(int64_t target, Nanos from) {
  Nanos time = from;
  Reset(time);
  int64_t carried = Augment();
  while (carried < target) {
    cut_.clear();
    for (int arc = 0; arc < static_cast<int>(arcs_.size() / 2); ++arc) {
      if (level_[Reverse(arc).to] >= 0 && level_[Forward(arc).to] < 0) cut_.push_back(arc);
    }
    time = NextTime(time, target);
    Widen(time);
    carried += Augment();
  }
  return time;
}

}  // namespace siphon
