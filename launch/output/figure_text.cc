#include "launch/output/figure_text.h"

#include "absl/strings/str_format.h"

namespace siphon {

std::string FigureText(double figure) {
  constexpr double kWholeFrom = 999.95;      // less would be rounded to four digits below 1000
  constexpr double kShownWithDigits = 1e-4;  // from here on "%g" writes no exponent
  if (figure >= kWholeFrom) return absl::StrFormat("%.0f", figure);
  return figure > 0 && figure < kShownWithDigits ? absl::StrFormat("%.5f", figure)
                                                 : absl::StrFormat("%.4g", figure);
}

}  // namespace siphon
