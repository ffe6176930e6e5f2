#include "launch/config/value_rules.h"

#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/config/closest_name.h"

namespace siphon {

absl::Status OneOf::Check(const std::string& value, const KnownNames& known) const {
  if (absl::c_linear_search(built, value)) return absl::OkStatus();
  const std::string today = absl::StrJoin(built, ", ");
  if (absl::c_linear_search(not_built, value)) {
    if (known.purpose == JobPurpose::kStudy) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("'", value, "' is known, but not built yet; today: ", today));
  }
  std::vector<std::string> all = built;
  all.insert(all.end(), not_built.begin(), not_built.end());
  const std::string closest = ClosestName(value, all);
  std::string names = today;
  if (known.purpose == JobPurpose::kStudy) {
    names = absl::StrJoin(all, ", ");
  } else if (!not_built.empty()) {
    absl::StrAppend(&names, "; not built yet: ", absl::StrJoin(not_built, ", "));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      QuoteForMessage(value), " is not known; ",
      closest.empty() ? "" : absl::StrCat("did you mean '", closest, "'? "), "known: ", names));
}

std::string OneOf::Words(const KnownNames&) const { return absl::StrJoin(built, ", "); }

std::optional<double> ScaleOf(const std::string& value) {
  double scale = 0;
  if (value == "none" || !absl::SimpleAtod(value, &scale)) return std::nullopt;
  return scale;
}

absl::Status NoneOrScale::Check(const std::string& value, const KnownNames& known) const {
  const std::optional<double> scale = ScaleOf(value);
  if (value == "none" || (scale.has_value() && *scale > 0 && std::isfinite(*scale))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(QuoteForMessage(value), " is not known; write ", Words(known)));
}

std::string NoneOrScale::Words(const KnownNames&) const {
  return "none, or a scale above 0 (1: as fast as the topology says, 0.05: a twentieth)";
}

absl::Status Registered::Check(const std::string& value, const KnownNames& known) const {
  const std::vector<std::string>& names = known.*registry;
  if (names.empty()) return absl::OkStatus();
  OneOf rule{names};
  for (const std::string& name : published) {
    if (!absl::c_linear_search(names, name)) rule.not_built.push_back(name);
  }
  return rule.Check(value, known);
}

std::string Registered::Words(const KnownNames& known) const {
  return absl::StrJoin(known.*registry, ", ");
}

}  // namespace siphon
