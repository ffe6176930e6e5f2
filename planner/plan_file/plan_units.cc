#include "planner/plan_file/plan_units.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace siphon {
namespace {

struct Unit {
  absl::string_view name;
  int64_t size;
};

constexpr std::array<Unit, 4> kTimes = {
    {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};
constexpr std::array<Unit, 4> kRates = {
    {{"GB/s", 1'000'000'000}, {"MB/s", 1'000'000}, {"kB/s", 1'000}, {"B/s", 1}}};
constexpr std::array<Unit, 6> kSizes = {{{"GiB", int64_t{1} << 30},
                                         {"MiB", int64_t{1} << 20},
                                         {"KiB", int64_t{1} << 10},
                                         {"GB", 1'000'000'000},
                                         {"MB", 1'000'000},
                                         {"B", 1}}};

// In the largest unit that leaves something before the point.
std::string AllDigits(int64_t value, const std::array<Unit, 4>& units) {
  for (const Unit& unit : units) {
    if (value < unit.size && unit.size > 1) continue;
    std::string text = absl::StrCat(value / unit.size);
    if (const int64_t rest = value % unit.size; rest != 0) {
      std::string digits = absl::StrCat(rest);
      const size_t width = absl::StrCat(unit.size).size() - 1;
      digits.insert(0, width - digits.size(), '0');
      digits.erase(digits.find_last_not_of('0') + 1);
      absl::StrAppend(&text, ".", digits);
    }
    return absl::StrCat(text, unit.name);
  }
  return "";  // the last unit takes every value
}

}  // namespace

std::string ExactText(Nanos time) { return AllDigits(time.value, kTimes); }
std::string ExactText(BytesPerSecond rate) { return AllDigits(rate.value, kRates); }

std::string ExactText(Bytes bytes) {
  if (bytes.value == 0) return "0B";
  std::string shortest;
  for (const Unit& unit : kSizes) {
    if (bytes.value % unit.size != 0) continue;
    std::string text = absl::StrCat(bytes.value / unit.size, unit.name);
    if (shortest.empty() || text.size() < shortest.size()) shortest = std::move(text);
  }
  return shortest;
}

std::string ExactText(int number) { return absl::StrCat(number); }

std::string KeyLine(absl::string_view key, absl::string_view value) {
  return absl::StrFormat("  %-20s%s\n", absl::StrCat(key, ":"), value);
}

}  // namespace siphon
