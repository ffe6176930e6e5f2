#ifndef SIPHON_LAUNCH_CONFIG_VALUE_RULES_H_
#define SIPHON_LAUNCH_CONFIG_VALUE_RULES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "launch/config/config_values.h"
#include "launch/config/load_job_config.h"

namespace siphon {

// What a key's value must satisfy beyond its type. A rule has
//   absl::Status Check(const T& value, const KnownNames& known) const;   InvalidArgument, no place
//   std::string Words(const KnownNames& known) const;                    for help; may be empty

struct AnyValue {
  template <typename T>
  absl::Status Check(const T&, const KnownNames&) const {
    return absl::OkStatus();
  }
  std::string Words(const KnownNames&) const { return ""; }
};

// least <= value <= most, or < most when `open`; without `most`, no upper end.
template <typename T>
struct Range {
  T least;
  std::optional<T> most = std::nullopt;
  bool open = false;

  absl::Status Check(const T& value, const KnownNames& known) const {
    const bool below = !most.has_value() || (open ? value < *most : value <= *most);
    if (value >= least && below) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("is ", WriteValue(value), "; must be ", Words(known)));
  }
  // A list's items each.
  absl::Status Check(const std::vector<T>& values, const KnownNames& known) const {
    for (const T& value : values) SIPHON_RETURN_IF_ERROR(Check(value, known));
    return absl::OkStatus();
  }
  std::string Words(const KnownNames&) const {
    const std::string from = absl::StrCat("at least ", WriteValue(least));
    if (!most.has_value()) return from;
    return absl::StrCat(from, open ? " and below " : " and at most ", WriteValue(*most));
  }
};

inline Range<int64_t> AtLeast(int64_t least) { return {least}; }
inline Range<double> AtLeast(double least) { return {least}; }
inline Range<int64_t> Between(int64_t least, int64_t most) { return {least, most}; }
inline Range<double> Between(double least, double most) { return {least, most}; }
inline Range<double> Fraction() { return {.least = 0.0, .most = 1.0, .open = true}; }

// One word of a list. Published values that this version does not have yet are refused by name.
struct OneOf {
  std::vector<std::string> built;
  std::vector<std::string> not_built = {};

  absl::Status Check(const std::string& value, const KnownNames& known) const;
  std::string Words(const KnownNames& known) const;
};

// "none", or a positive number.
struct NoneOrScale {
  absl::Status Check(const std::string& value, const KnownNames& known) const;
  std::string Words(const KnownNames& known) const;
};
// The number; nothing for "none".
std::optional<double> ScaleOf(const std::string& value);

// One name of a registry; those of `published` that it lacks are "not built yet".
struct Registered {
  std::vector<std::string> KnownNames::*registry;
  std::vector<std::string> published = {};

  absl::Status Check(const std::string& value, const KnownNames& known) const;
  std::string Words(const KnownNames& known) const;
};

// One value only, the default: the key is published, what it switches on is not built yet.
template <typename T>
struct NotBuiltYet {
  T only;

  absl::Status Check(const T& value, const KnownNames& known) const {
    if (value == only || known.purpose == JobPurpose::kStudy) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(value), " is known, but not built yet; ", Words(known)));
  }
  std::string Words(const KnownNames&) const {
    const std::string text = WriteValue(only);
    return text.empty() ? "today: leave the key out" : absl::StrCat("today: ", text);
  }

 private:
  static std::string Quoted(const T& value) { return absl::StrCat("'", WriteValue(value), "'"); }
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_VALUE_RULES_H_
