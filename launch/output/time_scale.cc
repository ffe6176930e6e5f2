#include "launch/output/time_scale.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace siphon {
namespace {

constexpr int kMostTicks = 8;  // beside 0

int64_t StepOf(int64_t span) {
  int64_t power = 1;
  while (true) {
    for (const int64_t factor : {1, 2, 5}) {
      if (span / (factor * power) <= kMostTicks) return factor * power;
    }
    power *= 10;
  }
}

struct Unit {
  absl::string_view name;
  double size;
};

// The largest in which the last tick is not below 1.
Unit UnitOf(int64_t span) {
  if (span >= 1'000'000'000) return {"s", 1e9};
  if (span >= 1'000'000) return {"ms", 1e6};
  if (span >= 1'000) return {"us", 1e3};
  return {"ns", 1};
}

}  // namespace

std::vector<TimeTick> TicksOf(Nanos span) {
  std::vector<TimeTick> ticks = {{Nanos(0), "0"}};
  if (span.value <= 0) return ticks;
  const int64_t step = StepOf(span.value);
  const Unit unit = UnitOf(span.value);
  for (int64_t time = step; time <= span.value; time += step) {
    ticks.push_back(
        {Nanos(time), absl::StrFormat("%g %s", static_cast<double>(time) / unit.size, unit.name)});
    if (time > span.value - step) break;  // the next one could leave 64 bits
  }
  return ticks;
}

}  // namespace siphon
