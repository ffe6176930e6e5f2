#include "planner/performance/single_layer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status CheckLayer(const SingleLayer& layer) {
  const struct {
    absl::string_view name;
    int64_t value;
  } kPositive[] = {{"buffers processed per step", layer.processed_per_step},
                   {"buffers swapped in per step", layer.swapped_in_per_step},
                   {"latency in steps", layer.latency_steps},
                   {"capacity in buffers", layer.capacity}};
  for (const auto& [name, value] : kPositive) {
    if (value <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": ", value, " must be positive"));
    }
  }
  if (layer.available < 0 || layer.available > layer.capacity) {
    return absl::InvalidArgumentError(absl::StrCat("available at first: ", layer.available,
                                                   " must be between 0 and the capacity of ",
                                                   layer.capacity, " buffers"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t FullConcurrency(const SingleLayer& layer) {
  return layer.latency_steps * layer.processed_per_step;
}

double Utilization(const SingleLayer& layer, int64_t available) {
  const double share = static_cast<double>(available) / static_cast<double>(FullConcurrency(layer));
  return std::min(1.0, share);
}

int64_t NextAvailable(const SingleLayer& layer, int64_t available) {
  const int64_t left = std::max<int64_t>(available - layer.processed_per_step, 0);
  const int64_t room = layer.capacity - available;
  return left + std::min(layer.swapped_in_per_step, room);
}

absl::StatusOr<std::vector<int64_t>> AvailableBuffers(const SingleLayer& layer, int64_t steps) {
  SIPHON_RETURN_IF_ERROR(CheckLayer(layer));
  std::vector<int64_t> available = {layer.available};
  for (int64_t step = 0; step < steps; ++step) {
    available.push_back(NextAvailable(layer, available.back()));
  }
  return available;
}

int64_t AvailableAfter(const SingleLayer& layer, int64_t steps) {
  const int64_t processed = layer.processed_per_step;
  const int64_t swapped_in = layer.swapped_in_per_step;
  SIPHON_CHECK(CheckLayer(layer).ok() && layer.available >= processed &&
                   layer.capacity >= processed + swapped_in,
               "processing and swap-in can go on at once");
  if (steps == 0) return layer.available;
  // A step that begins with too little room for a whole step's swap-in ends with
  // capacity - processed; the next takes in what was freed, and stays there.
  const int64_t most_with_room = layer.capacity - swapped_in;
  if (layer.available > most_with_room && swapped_in >= processed) {
    return layer.capacity - processed;
  }
  if (swapped_in >= processed) {
    const int64_t gain = swapped_in - processed;
    if (gain == 0) return layer.available;
    const int64_t linear_steps = (most_with_room - layer.available) / gain + 1;
    if (steps <= linear_steps) return layer.available + steps * gain;
    return layer.capacity - processed;
  }
  // Slower swap-in: at most the first step lacks room.
  const int64_t first = NextAvailable(layer, layer.available);
  const int64_t loss = processed - swapped_in;
  return std::max(first - (steps - 1) * loss, swapped_in);
}

}  // namespace siphon
