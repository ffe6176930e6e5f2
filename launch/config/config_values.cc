#include "launch/config/config_values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/config/closest_name.h"

namespace siphon {
namespace {

absl::Status Wrong(const ConfigNode& node, absl::string_view right) {
  return absl::InvalidArgumentError(absl::StrCat("is ", Describe(node), "; write ", right));
}

// The text of an unquoted scalar that is to be a number.
absl::Status CheckPlain(const ConfigNode& node, absl::string_view right) {
  if (node.kind != ConfigNode::Kind::kScalar) return Wrong(node, right);
  if (node.quoted) {
    return absl::InvalidArgumentError(absl::StrCat("is the text ", QuoteForMessage(node.text),
                                                   "; write ", right, ", not in quotes"));
  }
  return absl::OkStatus();
}

bool IsDecimal(absl::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '0') return false;  // octal to some readers of YAML
  return !text.empty() && absl::c_all_of(text, absl::ascii_isdigit);
}

// Text that YAML could take for something else, or that has a sign in it, needs quotes.
bool IsPlainWord(absl::string_view text) {
  static constexpr std::array<absl::string_view, 5> kMeaningful = {"null", "true", "false", "~",
                                                                   ""};
  if (absl::c_linear_search(kMeaningful, absl::AsciiStrToLower(text))) return false;
  if (!absl::ascii_isalpha(static_cast<unsigned char>(text[0])) && text[0] != '/') return false;
  return absl::c_all_of(text, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_-./", c);
  });
}

// "20s" for 20,000,000,000 ns: the largest unit that gives a whole number.
struct Unit {
  absl::string_view name;
  int64_t factor;
};
constexpr std::array<Unit, 4> kSizes = {
    {{"TiB", int64_t{1} << 40}, {"GiB", int64_t{1} << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}};
constexpr std::array<Unit, 3> kRates = {
    {{"GB/s", 1'000'000'000}, {"MB/s", 1'000'000}, {"kB/s", 1'000}}};
constexpr std::array<Unit, 3> kTimes = {{{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}}};

template <size_t N>
std::string WriteExactly(int64_t value, const std::array<Unit, N>& units, absl::string_view base) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) return absl::StrCat(value / unit.factor, unit.name);
  }
  return absl::StrCat(value, base);
}

}  // namespace

std::string Describe(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kEmpty:
      return "empty";
    case ConfigNode::Kind::kList:
      return "a list";
    case ConfigNode::Kind::kMap:
      return "a section";
    case ConfigNode::Kind::kScalar:
      return QuoteForMessage(node.text);
  }
  return "unknown";
}

absl::Status ReadValue(const ConfigNode& node, int64_t& value) {
  SIPHON_RETURN_IF_ERROR(CheckPlain(node, "a whole number"));
  if (!IsDecimal(node.text)) return Wrong(node, "a whole number");
  const char* end = node.text.data() + node.text.size();
  if (std::from_chars(node.text.data(), end, value).ec != std::errc()) {
    return absl::InvalidArgumentError(absl::StrCat(
        QuoteForMessage(node.text), " does not fit into 64 bits; write a whole number from ",
        std::numeric_limits<int64_t>::min(), " to ", std::numeric_limits<int64_t>::max()));
  }
  return absl::OkStatus();
}

absl::Status ReadValue(const ConfigNode& node, double& value) {
  SIPHON_RETURN_IF_ERROR(CheckPlain(node, "a number"));
  double read = 0;
  const char* end = node.text.data() + node.text.size();
  const auto [rest, error] = std::from_chars(node.text.data(), end, read);
  if (error == std::errc::result_out_of_range) {
    return absl::InvalidArgumentError(absl::StrCat(
        QuoteForMessage(node.text), " does not fit into a 64-bit floating-point number"));
  }
  if (error != std::errc() || rest != end) return Wrong(node, "a number");
  if (!std::isfinite(read)) return Wrong(node, "a finite number");
  value = read;
  return absl::OkStatus();
}

absl::Status ReadValue(const ConfigNode& node, bool& value) {
  SIPHON_RETURN_IF_ERROR(CheckPlain(node, "true or false"));
  if (node.text != "true" && node.text != "false") return Wrong(node, "true or false");
  value = node.text == "true";
  return absl::OkStatus();
}

absl::Status ReadValue(const ConfigNode& node, std::string& value) {
  if (node.kind == ConfigNode::Kind::kEmpty || (node.quoted && node.text.empty())) {
    return absl::InvalidArgumentError("is empty; write a text, or leave the key out");
  }
  if (node.kind != ConfigNode::Kind::kScalar) return Wrong(node, "a text");
  if (absl::c_any_of(node.text, absl::ascii_iscntrl)) {
    return absl::InvalidArgumentError(absl::StrCat("the text ", QuoteForMessage(node.text),
                                                   " has a control character; remove it"));
  }
  value = node.text;
  return absl::OkStatus();
}

absl::Status ReadValue(const ConfigNode& node, Bytes& value) {
  if (node.kind != ConfigNode::Kind::kScalar) return Wrong(node, "a size such as 512MiB");
  SIPHON_ASSIGN_OR_RETURN(value, ParseBytes(node.text));
  return absl::OkStatus();
}

absl::Status ReadValue(const ConfigNode& node, Nanos& value) {
  if (node.kind != ConfigNode::Kind::kScalar) return Wrong(node, "a time such as 20s");
  SIPHON_ASSIGN_OR_RETURN(value, ParseNanos(node.text));
  return absl::OkStatus();
}

absl::Status ReadValue(const ConfigNode& node, BytesPerSecond& value) {
  if (node.kind != ConfigNode::Kind::kScalar) return Wrong(node, "a rate such as 25GB/s");
  SIPHON_ASSIGN_OR_RETURN(value, ParseRate(node.text));
  return absl::OkStatus();
}

std::string WriteValue(int64_t value) { return absl::StrCat(value); }

std::string WriteValue(double value) {
  // The shortest text that reads back as the same bits.
  std::array<char, 32> text;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), result.ptr);
}

std::string WriteValue(bool value) { return value ? "true" : "false"; }

std::string WriteValue(const std::string& value) {
  if (value.empty() || IsPlainWord(value)) return value;
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string WriteValue(Bytes value) { return WriteExactly(value.value, kSizes, "B"); }

std::string WriteValue(BytesPerSecond value) { return WriteExactly(value.value, kRates, "B/s"); }

std::string WriteValue(Nanos value) { return WriteExactly(value.value, kTimes, "ns"); }

}  // namespace siphon
