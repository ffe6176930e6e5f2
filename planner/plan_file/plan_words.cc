#include "planner/plan_file/plan_words.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

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

PlanWord WordIn(const PlanWord& word, absl::string_view part) {
  return {word.line, word.column + static_cast<int>(part.data() - word.text.data()), part};
}

std::vector<PlanWord> SplitWord(const PlanWord& word, char separator) {
  std::vector<PlanWord> parts;
  if (word.text.empty()) return parts;
  for (const absl::string_view part : absl::StrSplit(word.text, separator)) {
    parts.push_back(WordIn(word, absl::StripAsciiWhitespace(part)));
  }
  return parts;
}

std::pair<PlanWord, PlanWord> CutFirstWord(const PlanWord& word) {
  const size_t blank = std::min(word.text.find_first_of(" \t"), word.text.size());
  return {WordIn(word, word.text.substr(0, blank)),
          WordIn(word, absl::StripLeadingAsciiWhitespace(word.text.substr(blank)))};
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

absl::StatusOr<PlanRange> ParseRange(const PlanWord& word, absl::string_view what) {
  const size_t to = word.text.find(" to ");
  if (to == absl::string_view::npos) {
    int only = 0;
    if (absl::SimpleAtoi(word.text, &only) && only >= 0 && only < std::numeric_limits<int>::max()) {
      return PlanRange{only, only + 1};
    }
  } else {
    PlanRange range;
    const bool numbers = absl::SimpleAtoi(word.text.substr(0, to), &range.begin) &&
                         absl::SimpleAtoi(word.text.substr(to + 4), &range.end);
    if (numbers && range.begin >= 0 && range.end >= range.begin &&
        range.end < std::numeric_limits<int>::max()) {
      return PlanRange{range.begin, range.end + 1};
    }
  }
  return ErrorAt(word, absl::StrCat(QuotedWord(word.text), " are no ", what,
                                    "; write the first and the last: '0 to 2'"));
}

std::string RangeText(absl::string_view what, const PlanRange& range) {
  if (range.end - range.begin == 1) return absl::StrCat(what, " ", range.begin);
  return absl::StrCat(what, "s ", range.begin, " to ", range.end - 1);
}

}  // namespace siphon
