#include "launch/output/memory_columns.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace siphon {
namespace {

Bytes SumOf(const MemoryByKind& memory, size_t kinds) {
  Bytes sum;
  for (size_t kind = 0; kind < kinds; ++kind) sum += memory.bytes[kind];
  return sum;
}

}  // namespace

std::vector<MemoryByKind> MemoryColumns(const MemoryCurve& curve, Nanos span, int columns) {
  std::vector<MemoryByKind> result(static_cast<size_t>(columns));
  if (span.value <= 0) return result;
  const auto column_of = [&](Nanos time) {
    const auto column = static_cast<int64_t>(absl::int128(time.value) * columns / span.value);
    return std::clamp<int64_t>(column, 0, columns - 1);
  };
  const auto raise = [&](int64_t column, const MemoryByKind& memory) {
    MemoryByKind& highest = result[static_cast<size_t>(column)];
    if (Total(memory) > Total(highest)) highest = memory;
  };
  int64_t reached = 0;  // columns before it are complete
  MemoryByKind held;
  for (const MemoryPoint& point : curve) {
    const int64_t column = column_of(point.time);
    // What was held so far lasts up to here, this column included.
    for (; reached < column; ++reached) raise(reached, held);
    if (absl::int128(point.time.value) * columns > absl::int128(column) * span.value) {
      raise(column, held);
    }
    held = point.bytes;
    raise(column, held);
  }
  for (; reached < columns; ++reached) raise(reached, held);
  return result;
}

std::string MemoryOutline(const std::vector<MemoryByKind>& columns, size_t kinds, int left,
                          const std::function<double(Bytes)>& y) {
  const bool any = std::any_of(columns.begin(), columns.end(), [kinds](const MemoryByKind& column) {
    return column.bytes[kinds - 1].value > 0;
  });
  if (!any) return "";
  std::string path;
  Bytes drawn(-1);
  for (size_t column = 0; column < columns.size(); ++column) {
    const Bytes sum = SumOf(columns[column], kinds);
    if (sum == drawn) continue;
    const std::string place = absl::StrFormat("%d %.1f", left + static_cast<int>(column), y(sum));
    if (path.empty()) {
      path = absl::StrCat("M", place);
    } else {
      absl::StrAppend(&path, "H", absl::StrReplaceAll(place, {{" ", "V"}}));
    }
    drawn = sum;
  }
  return absl::StrCat(path, "H", left + static_cast<int>(columns.size()));
}

}  // namespace siphon
