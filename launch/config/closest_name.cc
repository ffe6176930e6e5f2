#include "launch/config/closest_name.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace siphon {
namespace {

constexpr size_t kLongestName = 64;
constexpr size_t kLongestQuote = 60;

// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours cost 1
// each.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string Plain(absl::string_view name) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"-", "_"}});
}

}  // namespace

std::string ClosestName(absl::string_view name, const std::vector<std::string>& known) {
  if (name.empty() || name.size() > kLongestName) return "";
  const std::string wanted = Plain(name);
  std::string closest;
  size_t least = kLongestName + 1;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(wanted, Plain(candidate));
    const size_t longer = std::max(wanted.size(), candidate.size());
    // Two edits turn any two-letter name into any other: short names must share something.
    const size_t allowed = std::min(std::max<size_t>(2, longer / 3), longer / 2);
    if (distance <= allowed && distance < least) {
      least = distance;
      closest = candidate;
    }
  }
  return closest;
}

std::string QuoteForMessage(absl::string_view text) {
  std::string quoted = "'";
  size_t end = std::min(text.size(), kLongestQuote);
  // A letter of several bytes is shown whole or not at all.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  for (const char c : text.substr(0, end)) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppend(&quoted, absl::StrFormat("\\x%02x", static_cast<unsigned char>(c)));
    } else {
      quoted += c;
    }
  }
  return absl::StrCat(quoted, end < text.size() ? "..." : "", "'");
}

}  // namespace siphon
