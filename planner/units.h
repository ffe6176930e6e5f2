#ifndef SIPHON_PLANNER_UNITS_H_
#define SIPHON_PLANNER_UNITS_H_

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siphon {

// A number with a unit. Quantities of one kind add and compare; a plain number scales them.
template <typename Tag>
struct Quantity {
  constexpr Quantity() = default;
  constexpr explicit Quantity(int64_t raw) : value(raw) {}
  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  constexpr Quantity& operator+=(Quantity other) { return value += other.value, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value -= other.value, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, int64_t factor) {
    return Quantity(a.value * factor);
  }
  int64_t value = 0;
};

using Bytes = Quantity<struct BytesTag>;
using Nanos = Quantity<struct NanosTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;

// "1.50 GiB", "640 KiB", "17 B": three significant digits, binary units.
std::string FormatBytes(Bytes bytes);
// Both so that one sees that they differ: not {"19.1 MiB", "19.1 MiB"} but {"19583 KiB", "19531
// KiB"}.
std::pair<std::string, std::string> FormatApart(Bytes a, Bytes b);
// "1.23 s", "45.6 ms", "7.89 us", "12 ns".
std::string FormatNanos(Nanos nanos);
// "12.3 %" of 0.1234.
std::string FormatPercent(double share);
// "25.0 GB/s": decimal units, as link rates are quoted.
std::string FormatRate(BytesPerSecond rate);

// Parse "1048576B", "512MiB", "32GB", "1.5 GiB" (B, kB, MB, GB, TB decimal; KiB, MiB, GiB, TiB
// binary); 0 needs no unit. Errors: InvalidArgument when the unit is missing or unknown (known ones
// are listed), the number is negative or not a number, or the result does not fit into 63 bits.
absl::StatusOr<Bytes> ParseBytes(absl::string_view text);
// Parse "5ms", "20 s", "1.5us", "3min", "100ns". Errors as for ParseBytes.
absl::StatusOr<Nanos> ParseNanos(absl::string_view text);
// Parse "25GB/s", "900 MB/s", "1GiB/s". Errors as for ParseBytes.
absl::StatusOr<BytesPerSecond> ParseRate(absl::string_view text);

// a * b. Errors: InvalidArgument "<what> overflows 64 bits" when it does; `what` names the product
// for a reader.
absl::StatusOr<int64_t> CheckedProduct(int64_t a, int64_t b, absl::string_view what);

}  // namespace siphon

#endif  // SIPHON_PLANNER_UNITS_H_
