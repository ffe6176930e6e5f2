#include "planner/plan_words.h"

#include <cstddef>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

constexpr size_t kLongestQuote = 60;

template <typename Number>
absl::StatusOr<Number> ParseNumber(const PlanWord& word, Number least) {
  Number number = 0;
  if (!absl::SimpleAtoi(word.text, &number) || number < least) {
    return ErrorAt(word, absl::StrCat(QuotedWord(word.text), " is not a whole number from ", least,
                                      " to ", std::numeric_limits<Number>::max()));
  }
  return number;
}

}  // namespace

PlanWord WordAt(const PlanLine& line, absl::string_view part) {
  return {line.number, static_cast<int>(part.data() - line.whole.data()) + 1, part};
}

absl::Status ErrorAt(const PlanWord& word, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(word.line, ":", word.column, ": ", problem));
}

std::string QuotedWord(absl::string_view text) {
  const bool cut = text.size() > kLongestQuote;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kLongestQuote)), cut ? "..." : "", "'");
}

absl::StatusOr<int64_t> ParseLargeNumber(const PlanWord& word, int64_t least) {
  return ParseNumber<int64_t>(word, least);
}

absl::StatusOr<int> ParseSmallNumber(const PlanWord& word, int least) {
  return ParseNumber<int>(word, least);
}

}  // namespace siphon
