#include "planner/units.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace siphon {
namespace {

struct Unit {
  absl::string_view name;
  int64_t size;
};

constexpr int64_t kKi = 1024;
constexpr int64_t kKilo = 1000;

// Tables for printing ascend by size.
constexpr Unit kBinaryBytes[] = {
    {"B", 1}, {"KiB", kKi}, {"MiB", kKi* kKi}, {"GiB", kKi* kKi* kKi}, {"TiB", kKi* kKi* kKi* kKi}};
constexpr Unit kTimes[] = {
    {"ns", 1}, {"us", kKilo}, {"ms", kKilo* kKilo}, {"s", kKilo* kKilo* kKilo}};
constexpr Unit kDecimalRates[] = {{"B/s", 1},
                                  {"kB/s", kKilo},
                                  {"MB/s", kKilo* kKilo},
                                  {"GB/s", kKilo* kKilo* kKilo},
                                  {"TB/s", kKilo* kKilo* kKilo* kKilo}};

constexpr Unit kParsedBytes[] = {{"B", 1},
                                 {"kB", kKilo},
                                 {"MB", kKilo* kKilo},
                                 {"GB", kKilo* kKilo* kKilo},
                                 {"TB", kKilo* kKilo* kKilo* kKilo},
                                 {"KiB", kKi},
                                 {"MiB", kKi* kKi},
                                 {"GiB", kKi* kKi* kKi},
                                 {"TiB", kKi* kKi* kKi* kKi}};
constexpr Unit kParsedTimes[] = {{"ns", 1},
                                 {"us", kKilo},
                                 {"ms", kKilo* kKilo},
                                 {"s", kKilo* kKilo* kKilo},
                                 {"min", 60 * kKilo* kKilo* kKilo},
                                 {"h", 3600 * kKilo* kKilo* kKilo}};
constexpr Unit kParsedRates[] = {{"B/s", 1},
                                 {"kB/s", kKilo},
                                 {"MB/s", kKilo* kKilo},
                                 {"GB/s", kKilo* kKilo* kKilo},
                                 {"TB/s", kKilo* kKilo* kKilo* kKilo},
                                 {"KiB/s", kKi},
                                 {"MiB/s", kKi* kKi},
                                 {"GiB/s", kKi* kKi* kKi},
                                 {"TiB/s", kKi* kKi* kKi* kKi}};

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

std::string ThreeDigits(double number) {
  std::string text = absl::StrFormat("%.2f", number);
  if (text.size() > 4) text = absl::StrFormat("%.1f", number);  // "9.999" became "10.00"
  if (text.size() > 4) text = absl::StrFormat("%.0f", number);
  return text;
}

std::string Format(int64_t value, absl::Span<const Unit> units) {
  const double magnitude = value < 0 ? -static_cast<double>(value) : static_cast<double>(value);
  size_t chosen = 0;
  while (chosen + 1 < units.size()) {
    const double step = static_cast<double>(units[chosen + 1].size / units[chosen].size);
    // Half a unit below the next one rounds up to it: 999.7 ms is "1.00 s".
    if (magnitude / static_cast<double>(units[chosen].size) < step - 0.5) break;
    ++chosen;
  }
  const Unit& unit = units[chosen];
  if (chosen == 0) return absl::StrCat(value, " ", unit.name);
  return absl::StrCat(value < 0 ? "-" : "", ThreeDigits(magnitude / static_cast<double>(unit.size)),
                      " ", unit.name);
}

std::string KnownUnits(absl::Span<const Unit> units) {
  return absl::StrJoin(units, ", ",
                       [](std::string* out, const Unit& unit) { absl::StrAppend(out, unit.name); });
}

absl::Status BadQuantity(absl::string_view text, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' ", problem));
}

// "12.5" as 12 and 5 / 10; digits beyond the eighteenth decimal are below any unit's resolution and
// are dropped.
struct Decimal {
  absl::uint128 whole = 0;
  int64_t fraction = 0;
  int64_t fraction_scale = 1;
};

size_t DigitsAt(absl::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[end]))) ++end;
  return end - begin;
}

Decimal ParseDecimal(absl::string_view whole_digits, absl::string_view fraction_digits) {
  Decimal decimal;
  for (const char digit : whole_digits) {
    decimal.whole = decimal.whole * 10 + static_cast<uint64_t>(digit - '0');
    if (decimal.whole > static_cast<absl::uint128>(kLargest)) break;  // too large already
  }
  for (const char digit : fraction_digits.substr(0, 18)) {
    decimal.fraction = decimal.fraction * 10 + (digit - '0');
    decimal.fraction_scale *= 10;
  }
  return decimal;
}

absl::StatusOr<int64_t> Scale(absl::string_view text, const Decimal& decimal, int64_t unit) {
  const absl::uint128 size = static_cast<uint64_t>(unit);
  const absl::uint128 scale = static_cast<uint64_t>(decimal.fraction_scale);
  const absl::uint128 part = size * static_cast<uint64_t>(decimal.fraction);
  const absl::uint128 total = decimal.whole * size + (part + scale / 2) / scale;
  if (decimal.whole > static_cast<absl::uint128>(kLargest) ||
      total > static_cast<absl::uint128>(kLargest)) {
    return BadQuantity(text, "does not fit into 63 bits");
  }
  return static_cast<int64_t>(total);
}

absl::StatusOr<int64_t> Parse(absl::string_view original, absl::Span<const Unit> units,
                              absl::string_view example) {
  const absl::string_view text = absl::StripAsciiWhitespace(original);
  if (!text.empty() && text[0] == '-') return BadQuantity(original, "is negative");
  const size_t whole = DigitsAt(text, 0);
  size_t end = whole;
  size_t fraction = 0;
  if (whole > 0 && end < text.size() && text[end] == '.') {
    fraction = DigitsAt(text, end + 1);
    end += 1 + fraction;
  }
  if (whole == 0 || (end > whole && fraction == 0)) {
    return BadQuantity(original,
                       absl::StrCat("is not a number with a unit, such as '", example, "'"));
  }
  const absl::string_view name = absl::StripAsciiWhitespace(text.substr(end));
  if (name.empty()) {
    if (text.find_first_not_of("0.") == absl::string_view::npos) return 0;  // of whatever unit
    return BadQuantity(original, absl::StrCat("has no unit; known: ", KnownUnits(units)));
  }
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [name](const Unit& candidate) { return candidate.name == name; });
  if (unit == units.end()) {
    return BadQuantity(
        original, absl::StrCat("has the unknown unit '", name, "'; known: ", KnownUnits(units)));
  }
  const size_t fraction_begin = fraction > 0 ? whole + 1 : whole;
  return Scale(original, ParseDecimal(text.substr(0, whole), text.substr(fraction_begin, fraction)),
               unit->size);
}

}  // namespace

std::string FormatBytes(Bytes bytes) { return Format(bytes.value, kBinaryBytes); }

std::pair<std::string, std::string> FormatApart(Bytes a, Bytes b) {
  std::pair<std::string, std::string> texts(FormatBytes(a), FormatBytes(b));
  if (a == b || texts.first != texts.second) return texts;
  for (auto unit = std::rbegin(kBinaryBytes); texts.first == texts.second; ++unit) {
    texts = {absl::StrCat(a.value / unit->size, " ", unit->name),
             absl::StrCat(b.value / unit->size, " ", unit->name)};
  }
  return texts;
}

std::string FormatNanos(Nanos nanos) { return Format(nanos.value, kTimes); }
std::string FormatPercent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

std::string FormatRate(BytesPerSecond rate) { return Format(rate.value, kDecimalRates); }

absl::StatusOr<Bytes> ParseBytes(absl::string_view text) {
  const absl::StatusOr<int64_t> bytes = Parse(text, kParsedBytes, "512MiB");
  if (!bytes.ok()) return bytes.status();
  return Bytes(*bytes);
}

absl::StatusOr<Nanos> ParseNanos(absl::string_view text) {
  const absl::StatusOr<int64_t> nanos = Parse(text, kParsedTimes, "5ms");
  if (!nanos.ok()) return nanos.status();
  return Nanos(*nanos);
}

absl::StatusOr<BytesPerSecond> ParseRate(absl::string_view text) {
  const absl::StatusOr<int64_t> rate = Parse(text, kParsedRates, "25GB/s");
  if (!rate.ok()) return rate.status();
  return BytesPerSecond(*rate);
}

absl::StatusOr<int64_t> CheckedProduct(int64_t a, int64_t b, absl::string_view what) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    return absl::InvalidArgumentError(absl::StrCat(what, " overflows 64 bits"));
  }
  return product;
}

}  // namespace siphon
