#include "launch/output/timeline_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/output/action_colors.h"
#include "launch/output/memory_columns.h"
#include "launch/output/time_scale.h"
#include "launch/output/xml_text.h"

namespace siphon {
namespace {

// All in the SVG's own units, pixels at its natural size.
constexpr int kLeastLeft = 100;  // names of rows, "peak 13.2 GiB"
constexpr int kRight = 14;
constexpr int kTitleHeight = 26;
constexpr int kScaleHeight = 20;
constexpr int kRowGap = 4;
constexpr int kMemoryHeight = 56;
constexpr int kMemoryGap = 14;
constexpr int kCaptionHeight = 30;
constexpr double kNarrowest = 0.7;    // of an action drawn by itself
constexpr double kLetterWidth = 6.4;  // of the 11 pixel letters in cells
constexpr size_t kLongestName = 38;
constexpr int kNameLetterWidth = 6;

// Room for the longest name of a row.
int LeftOf(const TimelinePicture& picture) {
  size_t longest = 0;
  for (const TimelineRow& row : picture.rows) longest = std::max(longest, row.name.size());
  return std::max(kLeastLeft, kNameLetterWidth * static_cast<int>(std::min(longest, kLongestName)));
}

// Many rows are lower.
int RowHeight(size_t rows) { return rows <= 16 ? 24 : rows <= 40 ? 16 : 10; }

// At least one byte.
Bytes MostOf(const MemoryRow& row) {
  Bytes most = std::max(row.capacity, Bytes(1));
  for (const MemoryPoint& point : row.curve) most = std::max(most, Total(point.bytes));
  return most;
}

class SvgWriter {
 public:
  explicit SvgWriter(const TimelinePicture& picture)
      : picture_(picture),
        left_(LeftOf(picture)),
        plot_width_(kTimelineSvgWidth - left_ - kRight),
        row_height_(RowHeight(picture.rows.size())) {}

  std::string Write();

 private:
  int Height() const;
  double X(Nanos time) const {
    if (picture_.span.value <= 0) return left_;
    return left_ +
           static_cast<double>(time.value) * plot_width_ / static_cast<double>(picture_.span.value);
  }
  void WriteStyle();
  void WriteScale(int top, int bottom);
  void WriteRow(const TimelineRow& row, int top);
  void WriteAction(const Interval& interval, int top);
  // Both move `top` to below what they write.
  void WriteCaption(absl::string_view caption, int& top);
  void WriteMemory(const MemoryRow& row, Bytes most, int& top);
  void WriteName(absl::string_view name, int baseline);

  const TimelinePicture& picture_;
  const int left_;
  const int plot_width_;
  const int row_height_;
  std::string text_;
};

int SvgWriter::Height() const {
  int height = kTitleHeight + kScaleHeight +
               static_cast<int>(picture_.rows.size()) * (row_height_ + kRowGap) + 8;
  for (const auto* rows : {&picture_.memory, &picture_.elsewhere}) {
    if (rows->empty()) continue;
    height += kCaptionHeight + static_cast<int>(rows->size()) * (kMemoryHeight + kMemoryGap);
  }
  return height;
}

void SvgWriter::WriteStyle() {
  absl::StrAppend(&text_, "<style>\n",
                  ".siphon{color-scheme:light dark;font:11px system-ui,sans-serif}\n"
                  ".siphon text{fill:#24292f}.siphon .title{font-size:14px;font-weight:600}\n"
                  ".siphon .small{fill:#57606a}.siphon .cell{fill:#0b1020;text-anchor:middle;"
                  "pointer-events:none}\n"
                  ".siphon .grid{stroke:#8c959f;stroke-opacity:.35}.siphon .ground{fill:#8c959f;"
                  "fill-opacity:.12}\n"
                  ".siphon .limit{stroke:#cf222e;stroke-dasharray:5 3}\n");
  for (const ActionColor& color : ActionColors()) {
    absl::StrAppend(&text_, ".siphon .", color.css_class, "{fill:", color.hex, "}\n");
  }
  absl::StrAppend(&text_,
                  ".siphon .wait{fill:#8c959f;fill-opacity:.35}\n"
                  "@media (prefers-color-scheme:dark){.siphon text{fill:#e6edf3}"
                  ".siphon .small{fill:#9198a1}.siphon .cell{fill:#0b1020}}\n</style>\n");
}

void SvgWriter::WriteName(absl::string_view name, int baseline) {
  const bool cut = name.size() > kLongestName;
  absl::StrAppend(&text_, "<text x=\"4\" y=\"", baseline, "\"><title>", XmlText(name), "</title>",
                  XmlText(cut ? name.substr(0, kLongestName - 1) : name), cut ? "…" : "",
                  "</text>\n");
}

void SvgWriter::WriteScale(int top, int bottom) {
  for (const TimeTick& tick : TicksOf(picture_.span)) {
    const double x = X(tick.time);
    absl::StrAppend(&text_,
                    absl::StrFormat("<path class=\"grid\" d=\"M%.1f %dV%d\"/>"
                                    "<text class=\"small\" x=\"%.1f\" y=\"%d\" "
                                    "text-anchor=\"%s\">%s</text>\n",
                                    x, top + kScaleHeight - 5, bottom, x, top + kScaleHeight - 8,
                                    x > kTimelineSvgWidth - 50 ? "end" : "middle", tick.text));
  }
}

void SvgWriter::WriteAction(const Interval& interval, int top) {
  const double begin = X(interval.begin);
  const double width = X(interval.end) - begin;
  const std::string action = ToString(interval.action);
  const bool waits = interval.kind == IntervalKind::kWait;
  // A wait is a low bar, so that work stands out.
  const int inset = waits ? row_height_ / 3 : 0;
  absl::StrAppend(
      &text_,
      absl::StrFormat("<rect class=\"%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\">"
                      "<title>%s%s: %s, from %s</title></rect>",
                      ColorOf(interval).css_class, begin, top + inset,
                      std::max(width - (width > 3 ? 0.6 : 0), 0.2), row_height_ - 2 * inset,
                      waits ? "wait for " : "", action, FormatNanos(interval.end - interval.begin),
                      FormatNanos(interval.begin)));
  if (waits || row_height_ < 14) return;
  const std::string label = static_cast<double>(action.size()) * kLetterWidth < width
                                ? action
                                : absl::StrCat(interval.action.microbatch.value);
  if (static_cast<double>(label.size()) * kLetterWidth >= width) return;
  absl::StrAppend(&text_, absl::StrFormat("<text class=\"cell\" x=\"%.1f\" y=\"%d\">%s</text>",
                                          begin + width / 2, top + row_height_ / 2 + 4, label));
}

void SvgWriter::WriteRow(const TimelineRow& row, int top) {
  WriteName(row.name, top + row_height_ / 2 + 4);
  absl::StrAppend(&text_, "<rect class=\"ground\" x=\"", left_, "\" y=\"", top, "\" width=\"",
                  plot_width_, "\" height=\"", row_height_, "\"/>\n");
  std::map<absl::string_view, int64_t> crowd;  // time of each colour in what is too narrow
  Nanos crowd_begin;
  Nanos crowd_end;
  int crowd_size = 0;
  const auto flush = [&] {
    if (crowd.empty()) return;
    const auto most =
        std::max_element(crowd.begin(), crowd.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    absl::StrAppend(&text_, absl::StrFormat("<rect class=\"%s\" x=\"%.2f\" y=\"%d\" "
                                            "width=\"%.2f\" height=\"%d\"><title>%d short "
                                            "actions, from %s</title></rect>",
                                            most->first, X(crowd_begin), top,
                                            std::max(X(crowd_end) - X(crowd_begin), 0.2),
                                            row_height_, crowd_size, FormatNanos(crowd_begin)));
    crowd.clear();
    crowd_size = 0;
  };
  for (const Interval& interval : row.intervals) {
    if (X(interval.end) - X(interval.begin) >= kNarrowest) {
      flush();
      WriteAction(interval, top);
      continue;
    }
    if (!crowd.empty() && X(interval.end) - X(crowd_begin) > kNarrowest) flush();
    if (crowd.empty()) crowd_begin = interval.begin;
    crowd[ColorOf(interval).css_class] += (interval.end - interval.begin).value;
    crowd_end = interval.end;
    ++crowd_size;
  }
  flush();
  text_ += "\n";
}

void SvgWriter::WriteCaption(absl::string_view caption, int& top) {
  top += kCaptionHeight;
  absl::StrAppend(&text_, "<text class=\"title\" x=\"4\" y=\"", top - 10, "\">", caption,
                  "</text>\n");
}

void SvgWriter::WriteMemory(const MemoryRow& row, Bytes most, int& top) {
  const std::vector<MemoryByKind> columns = MemoryColumns(row.curve, picture_.span, plot_width_);
  Bytes peak;
  for (const MemoryByKind& column : columns) peak = std::max(peak, Total(column));
  WriteName(row.name, top + 14);
  absl::StrAppend(&text_, "<text class=\"small\" x=\"4\" y=\"", top + 30, "\">peak ",
                  FormatBytes(peak), "</text>\n");
  const auto y = [&](Bytes bytes) {
    return top + kMemoryHeight -
           static_cast<double>(bytes.value) * kMemoryHeight / static_cast<double>(most.value);
  };
  // The largest sum first, so that each smaller one is painted over it.
  for (size_t kinds = kMemoryKinds; kinds > 0; --kinds) {
    const auto kind = static_cast<MemoryKind>(kinds - 1);
    const std::string outline = MemoryOutline(columns, kinds, left_, y);
    if (outline.empty()) continue;
    absl::StrAppend(&text_, "<path fill=\"", MemoryColor(kind), "\" d=\"", outline, "V",
                    top + kMemoryHeight, "H", left_, "Z\"><title>", row.name, ": ",
                    MemoryKindName(kind), "</title></path>\n");
  }
  absl::StrAppend(&text_, "<path class=\"grid\" d=\"M", left_, " ", top + kMemoryHeight, "h",
                  plot_width_, "\"/>\n");
  if (row.capacity.value > 0) {
    absl::StrAppend(
        &text_, absl::StrFormat("<path class=\"limit\" d=\"M%d %.1fh%d\"><title>"
                                "capacity %s</title></path>\n",
                                left_, y(row.capacity), plot_width_, FormatBytes(row.capacity)));
  }
  top += kMemoryHeight + kMemoryGap;
}

std::string SvgWriter::Write() {
  absl::StrAppend(&text_,
                  "<svg class=\"siphon\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ",
                  kTimelineSvgWidth, " ", Height(), "\" role=\"img\" aria-label=\"",
                  XmlText(picture_.title), "\">\n");
  WriteStyle();
  absl::StrAppend(&text_, "<text class=\"title\" x=\"4\" y=\"18\">", XmlText(picture_.title),
                  "</text>\n");
  int top = kTitleHeight;
  const int rows_end =
      top + kScaleHeight + static_cast<int>(picture_.rows.size()) * (row_height_ + kRowGap);
  WriteScale(top, rows_end);
  top += kScaleHeight;
  for (const TimelineRow& row : picture_.rows) {
    WriteRow(row, top);
    top += row_height_ + kRowGap;
  }
  if (!picture_.memory.empty()) {
    Bytes most(1);
    for (const MemoryRow& row : picture_.memory) most = std::max(most, MostOf(row));
    WriteCaption(absl::StrCat("memory, each up to ", FormatBytes(most)), top);
    for (const MemoryRow& row : picture_.memory) WriteMemory(row, most, top);
  }
  if (!picture_.elsewhere.empty()) {
    WriteCaption("memory elsewhere, each up to what it has, or its peak where that is not known",
                 top);
    for (const MemoryRow& row : picture_.elsewhere) WriteMemory(row, MostOf(row), top);
  }
  absl::StrAppend(&text_, "</svg>\n");
  return std::move(text_);
}

}  // namespace

absl::string_view MemoryColor(MemoryKind kind) {
  // One hue for what stays, others for what comes and goes.
  constexpr std::array<absl::string_view, kMemoryKinds> kColors = {
      "#5b6ee1", "#8090f0", "#aab4f8", "#d0b3f5", "#e8833a",
      "#4cb782", "#c25b9f", "#d4a72c", "#7f8c99", "#b8bfc6"};
  return kColors[static_cast<size_t>(kind)];
}

std::string TimelineSvg(const TimelinePicture& picture) { return SvgWriter(picture).Write(); }

}  // namespace siphon
