#ifndef SIPHON_PLANNER_PLAN_FILE_PLAN_FIELDS_H_
#define SIPHON_PLANNER_PLAN_FILE_PLAN_FIELDS_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "planner/plan_file/plan_units.h"
#include "planner/plan_file/plan_words.h"
#include "planner/units.h"

namespace siphon {

// What happens to a figure that is 0 when it is printed.
enum class ZeroFigure { kLeftOut, kWritten };

// A figure of T in a plan file: the one place that knows its name, for the one who writes it and
// the one who reads it.
template <typename T>
struct PlanField {
  absl::string_view name;
  std::variant<Nanos T::*, Bytes T::*, BytesPerSecond T::*, int T::*> member;
  ZeroFigure zero = ZeroFigure::kLeftOut;
};

inline absl::Status TakeFigure(const PlanWord& word, Nanos& into) {
  return Take(ParseNanos(word.text), word, into);
}
inline absl::Status TakeFigure(const PlanWord& word, Bytes& into) {
  return Take(ParseBytes(word.text), word, into);
}
inline absl::Status TakeFigure(const PlanWord& word, BytesPerSecond& into) {
  return Take(ParseRate(word.text), word, into);
}
inline absl::Status TakeFigure(const PlanWord& word, int& into) {
  const absl::StatusOr<int> number = ParseSmallNumber(word, 0);
  if (number.ok()) into = *number;
  return number.status();
}

// Names and figures of what is not left out, in order.
template <typename T, size_t kCount>
std::vector<std::pair<absl::string_view, std::string>> FieldTexts(
    const std::array<PlanField<T>, kCount>& fields, const T& of) {
  std::vector<std::pair<absl::string_view, std::string>> texts;
  for (const PlanField<T>& field : fields) {
    std::visit(
        [&](auto member) {
          const auto& figure = of.*member;
          const bool is_zero = figure == std::decay_t<decltype(figure)>{};
          if (is_zero && field.zero == ZeroFigure::kLeftOut) return;
          texts.emplace_back(field.name, ExactText(figure));
        },
        field.member);
  }
  return texts;
}

// Whether `name` is one of the fields.
template <typename T, size_t kCount>
bool HasField(const std::array<PlanField<T>, kCount>& fields, absl::string_view name) {
  for (const PlanField<T>& field : fields) {
    if (field.name == name) return true;
  }
  return false;
}

// Reads `pair.value` into the field that `pair.key` names. Requires: HasField.
template <typename T, size_t kCount>
absl::Status ReadField(const std::array<PlanField<T>, kCount>& fields, const PlanPair& pair,
                       T& into) {
  for (const PlanField<T>& field : fields) {
    if (field.name != pair.key.text) continue;
    return std::visit([&](auto member) { return TakeFigure(pair.value, into.*member); },
                      field.member);
  }
  return absl::OkStatus();
}

// The names, for messages: "forward, input_backward, step".
template <typename T, size_t kCount>
std::string FieldNames(const std::array<PlanField<T>, kCount>& fields) {
  const auto append = [](std::string* out, const PlanField<T>& field) {
    absl::StrAppend(out, field.name);
  };
  return absl::StrJoin(fields, ", ", append);
}

// A KeyLine for each.
template <typename T, size_t kCount>
std::string FieldLines(const std::array<PlanField<T>, kCount>& fields, const T& of) {
  std::string lines;
  for (const auto& [name, figure] : FieldTexts(fields, of)) lines += KeyLine(name, figure);
  return lines;
}

// "forward 1.5ms, stash 384MiB".
template <typename T, size_t kCount>
std::string FieldList(const std::array<PlanField<T>, kCount>& fields, const T& of) {
  return absl::StrJoin(FieldTexts(fields, of), ", ", absl::PairFormatter(" "));
}

// Reads what FieldList prints. Errors: InvalidArgument with the place of an unknown or repeated
// name, or of a value that is none.
template <typename T, size_t kCount>
absl::Status ReadFieldList(const std::array<PlanField<T>, kCount>& fields,
                           const std::vector<PlanWord>& list, T& into) {
  std::bitset<kCount> seen;
  for (const PlanWord& item : list) {
    const auto [name, value] = CutFirstWord(item);
    size_t index = 0;
    while (index < kCount && fields[index].name != name.text) ++index;
    if (index == kCount) {
      return ErrorAt(name, absl::StrCat("unknown figure ", QuotedWord(name.text),
                                        "; known: ", FieldNames(fields)));
    }
    if (seen[index]) return ErrorAt(name, absl::StrCat(QuotedWord(name.text), " stands twice"));
    seen.set(index);
    if (absl::Status read = ReadField(fields, {name, value}, into); !read.ok()) return read;
  }
  return absl::OkStatus();
}

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLAN_FILE_PLAN_FIELDS_H_
