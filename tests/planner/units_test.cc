#include "planner/units.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace siphon {
namespace {

constexpr int64_t kKi = 1024;

TEST(Units, AddCompareAndScale) {
  Bytes total = Bytes(3) + Bytes(4);
  total -= Bytes(2);
  EXPECT_EQ(total, Bytes(5));
  EXPECT_EQ(total * 3, Bytes(15));
  EXPECT_LT(Nanos(1), Nanos(2));
}

TEST(Units, FormatBytesWithThreeDigits) {
  const std::vector<std::pair<int64_t, std::string>> cases = {
      {0, "0 B"},
      {17, "17 B"},
      {1023, "1023 B"},
      {kKi, "1.00 KiB"},
      {640 * kKi, "640 KiB"},
      {kKi * kKi - 1, "1.00 MiB"},
      {1023 * kKi, "1023 KiB"},
      {3 * kKi * kKi * kKi / 2, "1.50 GiB"},
      {12 * kKi * kKi + kKi * kKi / 2, "12.5 MiB"},
      {kKi * 10 - 1, "10.0 KiB"},
      {-640 * kKi, "-640 KiB"},
      {std::numeric_limits<int64_t>::max(), "8388608 TiB"},
  };
  for (const auto& [value, text] : cases) EXPECT_EQ(FormatBytes(Bytes(value)), text) << value;
}

TEST(Units, FormatsBytesThatDifferSoThatItShows) {
  using Texts = std::pair<std::string, std::string>;
  EXPECT_EQ(FormatApart(Bytes(3 << 20), Bytes(2 << 20)), Texts("3.00 MiB", "2.00 MiB"));
  EXPECT_EQ(FormatApart(Bytes(20'053'000), Bytes(20'000'000)), Texts("19583 KiB", "19531 KiB"));
  EXPECT_EQ(FormatApart(Bytes((1 << 20) + 1), Bytes(1 << 20)), Texts("1048577 B", "1048576 B"));
  EXPECT_EQ(FormatApart(Bytes(1 << 20), Bytes(1 << 20)), Texts("1.00 MiB", "1.00 MiB"));
  EXPECT_EQ(FormatApart(Bytes(7), Bytes(0)), Texts("7 B", "0 B"));
}

TEST(Units, FormatSharesInPercent) {
  EXPECT_EQ(FormatPercent(0.1234), "12.3 %");
  EXPECT_EQ(FormatPercent(0), "0.0 %");
  EXPECT_EQ(FormatPercent(1.5), "150.0 %");
}

TEST(Units, FormatTimesAndRates) {
  EXPECT_EQ(FormatNanos(Nanos(12)), "12 ns");
  EXPECT_EQ(FormatNanos(Nanos(7'890)), "7.89 us");
  EXPECT_EQ(FormatNanos(Nanos(45'600'000)), "45.6 ms");
  EXPECT_EQ(FormatNanos(Nanos(999'700'000)), "1.00 s");
  EXPECT_EQ(FormatNanos(Nanos(1'230'000'000)), "1.23 s");
  EXPECT_EQ(FormatNanos(Nanos(5'400'000'000'000)), "5400 s");
  EXPECT_EQ(FormatRate(BytesPerSecond(25'000'000'000)), "25.0 GB/s");
  EXPECT_EQ(FormatRate(BytesPerSecond(950)), "950 B/s");
}

TEST(Units, ParseBytes) {
  const std::vector<std::pair<std::string, int64_t>> cases = {
      {"1048576B", 1048576},
      {"512MiB", 512 * kKi * kKi},
      {"32GB", 32'000'000'000},
      {"1.5 GiB", 3 * kKi * kKi * kKi / 2},
      {" 7 kB ", 7000},
      {"2TiB", 2 * kKi * kKi * kKi * kKi},
      {"0B", 0},
      {"0.3KiB", 307},
      {"9223372036854775807B", std::numeric_limits<int64_t>::max()},
  };
  for (const auto& [text, value] : cases) {
    const absl::StatusOr<Bytes> parsed = ParseBytes(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->value, value) << text;
  }
}

TEST(Units, ParseTimesAndRates) {
  const std::vector<std::pair<std::string, int64_t>> times = {{"5ms", 5'000'000},
                                                              {"20 s", 20'000'000'000},
                                                              {"1.5us", 1500},
                                                              {"3min", 180'000'000'000},
                                                              {"100ns", 100}};
  for (const auto& [text, value] : times) {
    const absl::StatusOr<Nanos> parsed = ParseNanos(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->value, value) << text;
  }
  const std::vector<std::pair<std::string, int64_t>> rates = {
      {"25GB/s", 25'000'000'000}, {"900 MB/s", 900'000'000}, {"1GiB/s", kKi * kKi * kKi}};
  for (const auto& [text, value] : rates) {
    const absl::StatusOr<BytesPerSecond> parsed = ParseRate(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->value, value) << text;
  }
}

TEST(Units, NothingNeedsNoUnit) {
  for (const char* text : {"0", "0.0", " 00 "}) {
    EXPECT_EQ(ParseBytes(text).value_or(Bytes(1)), Bytes(0)) << text;
    EXPECT_EQ(ParseNanos(text).value_or(Nanos(1)), Nanos(0)) << text;
    EXPECT_EQ(ParseRate(text).value_or(BytesPerSecond(1)), BytesPerSecond(0)) << text;
  }
}

TEST(Units, SayWhatIsWrongWithAText) {
  const std::string known = "; known: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"512", "'512' has no unit" + known},
      {"512XB", "'512XB' has the unknown unit 'XB'" + known},
      {"5ms", "'5ms' has the unknown unit 'ms'" + known},
      {"-5B", "'-5B' is negative"},
      {"MiB", "'MiB' is not a number with a unit, such as '512MiB'"},
      {"", "'' is not a number with a unit, such as '512MiB'"},
      {"1.B", "'1.B' is not a number with a unit, such as '512MiB'"},
      {"1e3B", "'1e3B' has the unknown unit 'e3B'" + known},
      {"9223372036854775808B", "'9223372036854775808B' does not fit into 63 bits"},
      {"8388608TiB", "'8388608TiB' does not fit into 63 bits"},
      {"99999999999999999999999999999999999999999999TiB",
       "'99999999999999999999999999999999999999999999TiB' does not fit into 63 bits"},
  };
  for (const auto& [text, message] : cases) {
    const absl::StatusOr<Bytes> parsed = ParseBytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(parsed.status().message()), message);
  }
  EXPECT_EQ(std::string(ParseNanos("7").status().message()),
            "'7' has no unit; known: ns, us, ms, s, min, h");
  EXPECT_EQ(std::string(ParseRate("25GB").status().message()),
            "'25GB' has the unknown unit 'GB'; known: B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, "
            "GiB/s, TiB/s");
}

TEST(Units, WhatIsPrintedParsesBack) {
  for (const int64_t value : {int64_t{17}, 640 * kKi, 3 * kKi * kKi * kKi / 2}) {
    const absl::StatusOr<Bytes> parsed = ParseBytes(FormatBytes(Bytes(value)));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->value, value);
  }
}

TEST(CheckedProduct, TellsWhatOverflows) {
  EXPECT_EQ(*CheckedProduct(3'000'000'000, 3'000'000'000, "x"), 9'000'000'000'000'000'000);
  const absl::StatusOr<int64_t> product = CheckedProduct(4'000'000'000, 3'000'000'000, "the area");
  EXPECT_EQ(product.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(product.status().message()), "the area overflows 64 bits");
}

}  // namespace
}  // namespace siphon
