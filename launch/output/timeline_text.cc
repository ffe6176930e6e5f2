#include "launch/output/timeline_text.h"

#include <algorithm>
#include <cstddef>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "launch/output/action_colors.h"
#include "launch/output/time_scale.h"

namespace siphon {
namespace {

constexpr int kLeastPlot = 20;  // letters; less shows nothing

// Which interval each letter shows, or none.
std::vector<const Interval*> LettersOf(const TimelineRow& row, Nanos span, int width) {
  std::vector<const Interval*> letters(static_cast<size_t>(width), nullptr);
  if (span.value <= 0) return letters;
  std::vector<int64_t> longest(static_cast<size_t>(width), 0);
  const auto time_at = [&](int64_t letter) {
    return static_cast<int64_t>(absl::int128(span.value) * letter / width);
  };
  for (const Interval& interval : row.intervals) {
    auto letter = static_cast<int64_t>(absl::int128(interval.begin.value) * width / span.value);
    for (; letter < width && time_at(letter) < interval.end.value; ++letter) {
      const int64_t shared = std::min(time_at(letter + 1), interval.end.value) -
                             std::max(time_at(letter), interval.begin.value);
      const auto place = static_cast<size_t>(letter);
      if (shared <= longest[place]) continue;
      longest[place] = shared;
      letters[place] = &interval;
    }
  }
  return letters;
}

// One action over `length` letters.
std::string Cell(const Interval& interval, size_t length, TextColors colors) {
  const ActionColor& color = ColorOf(interval);
  if (interval.kind == IntervalKind::kWait) return std::string(length, '.');
  const char fill = colors == TextColors::kTerminal ? ' ' : color.letter;
  std::string text = ToString(interval.action);
  if (text.size() > length) {  // the kind says more than a stage that one row has throughout
    const std::string kind(ActionKindName(interval.action.kind));
    text = HasMicrobatch(interval.action)
               ? absl::StrCat(kind.substr(0, 1), interval.action.microbatch.value)
               : kind;
    if (text.size() > length) text = kind.substr(0, length > 0 ? 1 : 0);
  }
  text.resize(length, fill);
  if (colors == TextColors::kNone) return text;
  return absl::StrCat("\x1b[48;5;", color.terminal, "m\x1b[38;5;16m", text, "\x1b[0m");
}

std::string RowText(const TimelineRow& row, Nanos span, int width, TextColors colors) {
  const std::vector<const Interval*> letters = LettersOf(row, span, width);
  std::string text;
  for (size_t begin = 0; begin < letters.size();) {
    size_t end = begin + 1;
    while (end < letters.size() && letters[end] == letters[begin]) ++end;
    absl::StrAppend(&text, letters[begin] == nullptr ? std::string(end - begin, '.')
                                                     : Cell(*letters[begin], end - begin, colors));
    begin = end;
  }
  return text;
}

// "0        10 ms     20 ms": each text begins at its time.
std::string ScaleText(Nanos span, int width) {
  std::string text;
  for (const TimeTick& tick : TicksOf(span)) {
    const auto place = static_cast<size_t>(
        span.value <= 0 ? 0
                        : static_cast<int64_t>(absl::int128(tick.time.value) * width / span.value));
    const bool fits = text.empty() || place >= text.size() + 2;
    if (!fits || place + tick.text.size() > static_cast<size_t>(width)) continue;
    text.resize(place, ' ');
    text += tick.text;
  }
  return text;
}

}  // namespace

std::string TimelinePictureText(const TimelinePicture& picture, int columns, TextColors colors) {
  size_t name_width = 0;
  for (const TimelineRow& row : picture.rows) name_width = std::max(name_width, row.name.size());
  const int width = std::max(kLeastPlot, columns - static_cast<int>(name_width) - 2);
  std::string text = std::string(name_width + 2, ' ') + ScaleText(picture.span, width) + "\n";
  for (const TimelineRow& row : picture.rows) {
    absl::StrAppend(&text, row.name, std::string(name_width + 2 - row.name.size(), ' '),
                    RowText(row, picture.span, width, colors), "\n");
  }
  return text;
}

}  // namespace siphon
