#include "partitioner/stage_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace siphon {
namespace {

constexpr double kNanosPerSecond = 1e9;
constexpr double kNever = std::numeric_limits<double>::infinity();

// Sums of gradients cross a ring twice, once in and once out, for each replica (PipeDream's
// optimizer, which counts both directions on one link).
constexpr double kAllReduceFactor = 4;
// An activation forward and its gradient backward.
constexpr double kBothWays = 2;
// Of a worker: more than quotients of exact sums are off by, and no worker's worth of work.
constexpr double kRoundingSlack = 1e-6;

double BytesOf(const CutState& state, Charged charged) {
  return static_cast<double>(charged == Charged::kCrossing ? state.crossing_bytes
                                                           : state.frontier_bytes);
}

int64_t InFlight(int replicas, int workers_after) {
  return (int64_t{workers_after} + replicas + replicas - 1) / replicas;
}

// The better continuation from one state with so many workers left for it.
struct Step {
  double value = kNever;
  size_t end = 0;
  int replicas = 0;
};

class Search {
 public:
  Search(const CutStates& cuts, const StageCostModel& model, const SearchRequest& request)
      : cuts_(cuts),
        model_(model),
        request_(request),
        columns_(static_cast<size_t>(request.workers) + 1),
        steps_(cuts.states.size() * columns_),
        fewest_(cuts.states.size(), 0),
        most_(cuts.states.size(), request.workers) {
    BoundWorkers();
  }

  std::optional<SearchResult> Run() {
    const size_t last = cuts_.states.size() - 1;
    At(last, 0).value = 0;
    for (size_t begin = last; begin-- > 0;) {
      for (size_t end = begin + 1; end <= last; ++end) {
        if (cuts_.states[begin].nodes < cuts_.states[end].nodes &&
            cuts_.states[begin].before.IsSubsetOf(cuts_.states[end].before)) {
          TryStage(begin, end);
        }
      }
    }
    int used = request_.workers;
    if (request_.use == SearchRequest::Use::kAtMost) {
      for (int workers = request_.workers; workers >= 1; --workers) {
        if (At(0, workers).value <= At(0, used).value) used = workers;
      }
    }
    if (At(0, used).value == kNever) return std::nullopt;
    return PathFrom(used);
  }

 private:
  Step& At(size_t state, int workers) {
    return steps_[state * columns_ + static_cast<size_t>(workers)];
  }

  // No stage takes longer than the limit, so that the work on either side of a state needs so many
  // workers.
  void BoundWorkers() {
    if (request_.most_seconds == kNever || request_.most_seconds <= 0) return;
    const double limit = request_.most_seconds * kNanosPerSecond;
    const auto needed = [this, limit](int64_t nanos) {
      const double workers = std::ceil(static_cast<double>(nanos) / limit - kRoundingSlack);
      return static_cast<int>(std::min<double>(workers, request_.workers + 1));
    };
    for (size_t state = 0; state < cuts_.states.size(); ++state) {
      const int64_t before = cuts_.states[state].compute_ns;
      fewest_[state] = std::max(0, needed(cuts_.states.back().compute_ns - before));
      most_[state] = request_.workers - std::max(0, needed(before));
    }
  }

  void TryStage(size_t begin, size_t end) {
    const int least = std::max(1, fewest_[begin] - most_[end]);
    const int most = std::min(request_.most_replicas, most_[begin] - fewest_[end]);
    for (int replicas = least; replicas <= most; ++replicas) {
      const StageChoice stage{begin, end, replicas};
      const double seconds = StageSeconds(cuts_, model_, stage);
      if (seconds > request_.most_seconds) continue;
      const int most_after = std::min(most_[end], most_[begin] - replicas);
      for (int after = std::max(fewest_[end], fewest_[begin] - replicas); after <= most_after;
           ++after) {
        const double rest = At(end, after).value;
        if (rest == kNever) continue;
        const double value = Value(stage, seconds, after, rest);
        Step& step = At(begin, after + replicas);
        if (value < step.value) step = {value, end, replicas};
      }
    }
  }

  double Value(const StageChoice& stage, double seconds, int after, double rest) const {
    double bytes = 0;
    if (request_.objective == SearchObjective::kBytes || request_.most_bytes != kNever) {
      bytes = StageBytes(cuts_, model_, stage, after);
      if (bytes > request_.most_bytes) return kNever;
    }
    switch (request_.objective) {
      case SearchObjective::kSeconds:
        return std::max(seconds, rest);
      case SearchObjective::kBytes:
        return std::max(bytes, rest);
      case SearchObjective::kUnevenness:
        break;
    }
    return seconds * seconds + rest;
  }

  SearchResult PathFrom(int workers) {
    SearchResult result{At(0, workers).value, {}};
    for (size_t state = 0; state + 1 < cuts_.states.size();) {
      const Step& step = At(state, workers);
      result.stages.push_back({state, step.end, step.replicas});
      state = step.end;
      workers -= step.replicas;
    }
    return result;
  }

  const CutStates& cuts_;
  const StageCostModel& model_;
  const SearchRequest& request_;
  size_t columns_;
  std::vector<Step> steps_;  // [state][workers for it and what follows]
  // Workers that what follows a state may have.
  std::vector<int> fewest_;
  std::vector<int> most_;
};

}  // namespace

double StageSeconds(const CutStates& cuts, const StageCostModel& model, const StageChoice& stage) {
  const CutState& from = cuts.states[stage.begin];
  const CutState& to = cuts.states[stage.end];
  const double replicas = stage.replicas;
  const auto rate = static_cast<double>(model.bandwidth.value);
  const double compute = static_cast<double>(to.compute_ns - from.compute_ns) / kNanosPerSecond;
  const auto parameters = static_cast<double>(to.parameter_bytes - from.parameter_bytes);
  const double sums = kAllReduceFactor * (replicas - 1) * parameters / (rate * replicas);
  double seconds = (compute + sums) / replicas;
  if (stage.begin == 0 || !model.compression_ratio.has_value()) return seconds;
  const double per_byte = kBothWays / (*model.compression_ratio * rate * replicas);
  seconds = std::max(seconds, per_byte * BytesOf(from, model.charged));
  if (stage.end + 1 == cuts.states.size()) return seconds;
  return std::max(seconds, per_byte * BytesOf(to, model.charged));
}

double StageBytes(const CutStates& cuts, const StageCostModel& model, const StageChoice& stage,
                  int workers_after) {
  const CutState& from = cuts.states[stage.begin];
  const CutState& to = cuts.states[stage.end];
  const auto in_flight = static_cast<double>(InFlight(stage.replicas, workers_after));
  const auto parameters = static_cast<double>(to.parameter_bytes - from.parameter_bytes);
  const auto stash = static_cast<double>(to.stash_bytes - from.stash_bytes);
  const double versions = model.weight_versions == WeightVersions::kOne ? 1 : in_flight;
  return parameters * versions + stash * in_flight +
         static_cast<double>(to.training_state_bytes - from.training_state_bytes);
}

std::optional<SearchResult> SearchStages(const CutStates& cuts, const StageCostModel& model,
                                         const SearchRequest& request) {
  return Search(cuts, model, request).Run();
}

}  // namespace siphon
