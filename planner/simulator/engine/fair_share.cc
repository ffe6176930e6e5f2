#include "planner/simulator/engine/fair_share.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "planner/status.h"

namespace siphon {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr CapacityId kOwnPath(-1);  // as a limit: nothing that others use

}  // namespace

FairShare::FairShare(const TaskGraph& graph) { Restart(graph); }

void FairShare::Restart(const TaskGraph& graph) {
  graph_ = &graph;
  wires_.resize(graph.capacities().size());
  for (Wire& wire : wires_) {
    wire.flows.clear();
    wire.demand = 0;
  }
  uses_.assign(wires_.size(), {});
  flows_.clear();
  free_flows_.clear();
  flow_of_.assign(graph.tasks().size(), {});
  dirty_.clear();
  limits_.clear();
}

const std::vector<CapacityId>& FairShare::PathOf(TaskId copy) const {
  return graph_->paths()[graph_->tasks()[copy.value].path->value];
}

int64_t FairShare::RateNow(CapacityId id) const {
  const SharedCapacity& capacity = graph_->capacities()[id.value];
  if (capacity.other_direction.has_value() && capacity.rate_both.value > 0 &&
      !wires_[capacity.other_direction->value].flows.empty()) {
    return capacity.rate_both.value;
  }
  return capacity.rate.value > 0 ? capacity.rate.value : kNoLimit;
}

bool FairShare::IsBinding(CapacityId capacity) const {
  const int64_t rate = RateNow(capacity);
  return rate != kNoLimit && wires_[capacity.value].demand > absl::uint128(rate);
}

void FairShare::MarkAll(CapacityId capacity) {
  const std::vector<int>& flows = wires_[capacity.value].flows;
  dirty_.insert(dirty_.end(), flows.begin(), flows.end());
}

// A wire begins or ceases to be used, and the other direction may become slower or faster.
void FairShare::DirectionChanged(CapacityId id) {
  const std::optional<CapacityId>& other = graph_->capacities()[id.value].other_direction;
  if (!other.has_value()) return;
  if (graph_->capacities()[other->value].rate_both.value > 0) MarkAll(*other);
}

void FairShare::Begin(TaskId copy, Nanos now) {
  int index;
  if (free_flows_.empty()) {
    index = static_cast<int>(flows_.size());
    flows_.emplace_back();
  } else {
    index = free_flows_.back();
    free_flows_.pop_back();
  }
  const Bytes bytes = graph_->tasks()[copy.value].bytes;
  Flow& flow = flows_[index];
  flow = {.copy = copy,
          .fastest = kNoLimit,
          .since = now,
          .left = absl::uint128(bytes.value) * kNanosPerSecond};
  for (const CapacityId id : PathOf(copy)) {
    const BytesPerSecond rate = graph_->capacities()[id.value].rate;
    if (rate.value > 0) flow.fastest = std::min(flow.fastest, rate.value);
  }
  for (const CapacityId id : PathOf(copy)) {
    Join(index, id);
    uses_[id.value].bytes += bytes;
    if (wires_[id.value].flows.size() > 1) continue;
    wires_[id.value].busy_since = now;
    DirectionChanged(id);
  }
  flow_of_[copy.value].flow = index;
  dirty_.push_back(index);
}

void FairShare::Join(int flow, CapacityId id) {
  Wire& wire = wires_[id.value];
  wire.flows.push_back(flow);
  wire.demand += absl::uint128(flows_[flow].fastest);
}

FairShare::State FairShare::Save() const {
  SIPHON_CHECK(dirty_.empty(), "rates are settled");
  State state{.uses = uses_};
  for (const Flow& flow : flows_) {
    if (flow.copy.value < 0) continue;
    state.copies.push_back({.copy = flow.copy,
                            .version = flow_of_[flow.copy.value].version,
                            .fastest = flow.fastest,
                            .rate = flow.rate,
                            .limit = flow.limit,
                            .since = flow.since,
                            .left = flow.left});
  }
  state.busy_since.reserve(wires_.size());
  for (const Wire& wire : wires_) state.busy_since.push_back(wire.busy_since);
  return state;
}

void FairShare::Restore(const State& state) {
  SIPHON_CHECK(flows_.empty(), "nothing has begun");
  for (const State::Copy& copy : state.copies) {
    const auto index = static_cast<int>(flows_.size());
    flows_.push_back({.copy = copy.copy,
                      .fastest = copy.fastest,
                      .rate = copy.rate,
                      .since = copy.since,
                      .left = copy.left,
                      .limit = copy.limit});
    flow_of_[copy.copy.value] = {index, copy.version};
    for (const CapacityId id : PathOf(copy.copy)) Join(index, id);
  }
  const size_t known = std::min(wires_.size(), state.busy_since.size());
  for (size_t wire = 0; wire < known; ++wire) {
    wires_[wire].busy_since = state.busy_since[wire];
    uses_[wire] = state.uses[wire];
  }
}

void FairShare::End(TaskId copy, Nanos now) {
  Reference& reference = flow_of_[copy.value];
  const int index = reference.flow;
  SIPHON_CHECK(index >= 0, "a copy that ends has begun");
  for (const CapacityId id : PathOf(copy)) {
    Wire& wire = wires_[id.value];
    const bool was_binding = IsBinding(id);
    wire.flows.erase(std::find(wire.flows.begin(), wire.flows.end(), index));
    wire.demand -= absl::uint128(flows_[index].fastest);
    if (was_binding) MarkAll(id);
    if (!wire.flows.empty()) continue;
    uses_[id.value].busy += now - wire.busy_since;
    DirectionChanged(id);
  }
  if (flows_[index].limit != kOwnPath) limits_.push_back({copy, kOwnPath, now});
  reference.flow = -1;
  ++reference.version;
  flows_[index].copy = TaskId(-1);
  free_flows_.push_back(index);
}

// All copies that those in dirty_ share a binding capacity with, directly or through others: only
// their rates can change.
void FairShare::CollectComponent() {
  const auto add = [this](int index) {
    Flow& flow = flows_[index];
    if (flow.seen || flow.copy.value < 0) return;
    flow.seen = true;
    component_.push_back(index);
  };
  for (const int index : dirty_) add(index);
  dirty_.clear();
  for (size_t next = 0; next < component_.size(); ++next) {
    for (const CapacityId id : PathOf(flows_[component_[next]].copy)) {
      Wire& wire = wires_[id.value];
      if (wire.seen || !IsBinding(id)) continue;
      wire.seen = true;
      wire.left = RateNow(id);
      wire.unsettled = static_cast<int64_t>(wire.flows.size());
      component_wires_.push_back(id);
      for (const int index : wire.flows) add(index);
    }
  }
}

// What Fill would say, where no capacity binds copies, or one binds all of them and none is slower
// by itself: nearly always.
bool FairShare::FillAlike() {
  if (component_wires_.size() > 1) return false;
  if (component_wires_.empty()) {
    for (size_t place = 0; place < component_.size(); ++place) {
      component_speeds_[place] = {flows_[component_[place]].fastest, kOwnPath};
    }
    return true;
  }
  const CapacityId id = component_wires_.front();
  const Wire& wire = wires_[id.value];
  if (wire.flows.size() < component_.size()) return false;
  const int64_t level = wire.left / wire.unsettled;
  const bool is_slower = std::any_of(component_.begin(), component_.end(),
                                     [&](int flow) { return flows_[flow].fastest <= level; });
  if (is_slower) return false;
  component_speeds_.assign(component_.size(), {std::max<int64_t>(level, 1), id});
  return true;
}

// Progressive filling: all copies become faster alike, until their own fastest rate or a full
// capacity stops some of them.
void FairShare::Fill() {
  component_speeds_.assign(component_.size(), {});
  if (FillAlike()) return;
  size_t unsettled = component_.size();
  while (unsettled > 0) {
    int64_t level = kNoLimit;  // what the fullest capacity leaves to each of its copies
    for (const CapacityId id : component_wires_) {
      const Wire& wire = wires_[id.value];
      if (wire.unsettled > 0) level = std::min(level, wire.left / wire.unsettled);
    }
    const auto stops_here = [&](const Flow& flow, CapacityId& limit) {
      limit = kOwnPath;
      if (flow.fastest <= level) return true;
      for (const CapacityId id : PathOf(flow.copy)) {
        const Wire& wire = wires_[id.value];
        limit = id;
        if (wire.seen && wire.unsettled > 0 && wire.left / wire.unsettled == level) return true;
      }
      return false;
    };
    // Decided for all before any is taken out, for taking one out changes what is left for others.
    stopping_.clear();
    bool any_own_limit = false;
    for (size_t place = 0; place < component_.size(); ++place) {
      CapacityId limit = kOwnPath;
      if (component_speeds_[place].rate > 0 || !stops_here(flows_[component_[place]], limit))
        continue;
      any_own_limit |= limit == kOwnPath;
      stopping_.push_back({place, limit});
    }
    for (const auto& [place, limit] : stopping_) {
      if (any_own_limit && limit != kOwnPath) continue;  // what the slower ones leave may be more
      const Flow& flow = flows_[component_[place]];
      // A capacity of fewer bytes a second than it has copies still moves all of them.
      const int64_t rate = limit == kOwnPath ? flow.fastest : std::max<int64_t>(level, 1);
      component_speeds_[place] = {rate, limit};
      --unsettled;
      for (const CapacityId id : PathOf(flow.copy)) {
        Wire& wire = wires_[id.value];
        if (!wire.seen) continue;
        wire.left = std::max<int64_t>(wire.left - rate, 0);
        --wire.unsettled;
      }
    }
  }
}

void FairShare::Settle(int index, const Speed& speed, Nanos now) {
  const int64_t rate = speed.rate;
  Flow& flow = flows_[index];
  flow.seen = false;
  if (speed.limit != flow.limit) {
    flow.limit = speed.limit;
    limits_.push_back({flow.copy, flow.limit, now});
  }
  if (rate == flow.rate) return;
  const absl::uint128 moved = absl::uint128(flow.rate) * absl::uint128((now - flow.since).value);
  flow.left -= std::min(flow.left, moved);
  flow.since = now;
  flow.rate = rate;
  Nanos end = now;
  if (rate != kNoLimit) {
    end += Nanos(static_cast<int64_t>(
        absl::Uint128Low64((flow.left + absl::uint128(rate - 1)) / absl::uint128(rate))));
  }
  forecasts_.push_back(
      {.copy = flow.copy, .version = ++flow_of_[flow.copy.value].version, .end = end});
}

const std::vector<FairShare::Forecast>& FairShare::Settle(Nanos now) {
  forecasts_.clear();
  if (dirty_.empty()) return forecasts_;
  CollectComponent();
  Fill();
  const auto changed = static_cast<std::ptrdiff_t>(limits_.size());
  for (size_t place = 0; place < component_.size(); ++place) {
    Settle(component_[place], component_speeds_[place], now);
  }
  std::sort(limits_.begin() + changed, limits_.end(),
            [](const LimitChange& a, const LimitChange& b) { return a.copy < b.copy; });
  for (const CapacityId id : component_wires_) wires_[id.value].seen = false;
  component_.clear();
  component_wires_.clear();
  return forecasts_;
}

}  // namespace siphon
