#include "launch/output/figure_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace siphon {

std::string CountText(int64_t count, absl::string_view thing) {
  const absl::string_view ending = absl::EndsWith(thing, "ch") ? "es" : "s";
  return absl::StrCat(count, " ", thing, count == 1 ? "" : ending);
}

std::string FigureText(double figure) {
  constexpr double kWholeFrom = 999.95;      // less would be rounded to four digits below 1000
  constexpr double kShownWithDigits = 1e-4;  // from here on "%g" writes no exponent
  if (figure >= kWholeFrom) return absl::StrFormat("%.0f", figure);
  return figure > 0 && figure < kShownWithDigits ? absl::StrFormat("%.5f", figure)
                                                 : absl::StrFormat("%.4g", figure);
}

}  // namespace siphon
