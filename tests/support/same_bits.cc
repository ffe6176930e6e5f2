#include "tests/support/same_bits.h"

#include <bit>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace siphon {
namespace {

struct Difference {
  size_t first = 0;
  size_t count = 0;
};

Difference Compare(const std::vector<float>& expected, const std::vector<float>& actual) {
  Difference difference;
  for (size_t element = 0; element < expected.size(); ++element) {
    if (std::bit_cast<uint32_t>(expected[element]) == std::bit_cast<uint32_t>(actual[element]))
      continue;
    if (difference.count++ == 0) difference.first = element;
  }
  return difference;
}

}  // namespace

testing::AssertionResult SameBits(const std::vector<float>& expected,
                                  const std::vector<float>& actual) {
  if (expected.size() != actual.size()) {
    return testing::AssertionFailure()
           << "expected " << expected.size() << " elements, got " << actual.size();
  }
  const Difference difference = Compare(expected, actual);
  if (difference.count == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << absl::StrFormat(
             "%d of %d elements differ, the first at [%d]: expected %.9g (%a), got %.9g (%a)",
             difference.count, expected.size(), difference.first, expected[difference.first],
             expected[difference.first], actual[difference.first], actual[difference.first]);
}

testing::AssertionResult SameBits(const std::map<std::string, std::vector<float>>& expected,
                                  const std::map<std::string, std::vector<float>>& actual) {
  for (const auto& [name, values] : actual) {
    if (!expected.contains(name))
      return testing::AssertionFailure() << "unexpected tensor " << name;
  }
  std::string first;
  int differing = 0;
  for (const auto& [name, values] : expected) {
    const auto found = actual.find(name);
    if (found == actual.end()) return testing::AssertionFailure() << "missing tensor " << name;
    const testing::AssertionResult same = SameBits(values, found->second);
    if (!same && differing++ == 0) first = name + ": " + same.message();
  }
  if (differing == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << differing << " of " << expected.size() << " tensors differ, the first is " << first;
}

testing::AssertionResult SameBits(double expected, double actual) {
  if (std::bit_cast<uint64_t>(expected) == std::bit_cast<uint64_t>(actual))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << absl::StrFormat("expected %.17g (%a), got %.17g (%a)",
                                                        expected, expected, actual, actual);
}

}  // namespace siphon
