#include "launch/output/timeline_page.h"

#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "launch/output/action_colors.h"
#include "launch/output/timeline_svg.h"
#include "launch/output/xml_text.h"

namespace siphon {
namespace {

constexpr absl::string_view kStyle = R"(<style>
:root{color-scheme:light dark}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1240px;padding:16px 16px 64px;font:15px/1.45 system-ui,sans-serif;
background:#fff;color:#24292f;overflow-wrap:anywhere}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p{margin:4px 0}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:8px;margin:14px 0;padding:0}
.facts div{border:1px solid #d0d7de;border-radius:6px;padding:6px 10px}
.facts dt{font-size:12px;color:#57606a}.facts dd{margin:0;font-weight:600}
.wide{overflow-x:auto;margin:12px 0}.wide svg{display:block;width:100%;min-width:760px;height:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:3px 12px 3px 0;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{border-bottom:1px solid #d0d7de;font-weight:600}
.legend{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:13px}
.legend i{display:inline-block;width:12px;height:12px;border-radius:2px;margin-right:5px;vertical-align:-1px}
#told{position:fixed;left:0;right:0;bottom:0;padding:8px 16px;background:#24292f;color:#fff;font-size:14px}
#told:empty{display:none}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}.facts div,th{border-color:#3d444d}
.facts dt{color:#9198a1}#told{background:#e6edf3;color:#0d1117}}
</style>
)";

// Fingers have no pointer that could rest on something.
constexpr absl::string_view kScript = R"(<script>
document.addEventListener("click",function(event){
var shape=event.target.closest("rect,path");var title=shape&&shape.querySelector("title");
document.getElementById("told").textContent=title?title.textContent:"";});
</script>
)";

void AppendFacts(std::string& html, const TimelinePage& page) {
  if (page.facts.empty()) return;
  absl::StrAppend(&html, "<dl class=\"facts\">\n");
  for (const auto& [name, value] : page.facts) {
    absl::StrAppend(&html, "<div><dt>", XmlText(name), "</dt><dd>", XmlText(value),
                    "</dd></div>\n");
  }
  absl::StrAppend(&html, "</dl>\n");
}

void AppendChip(std::string& html, absl::string_view color, absl::string_view meaning) {
  absl::StrAppend(&html, "<span><i style=\"background:", color, "\"></i>", meaning, "</span>\n");
}

void AddKinds(const std::vector<MemoryRow>& rows, std::set<MemoryKind>& kinds) {
  for (const MemoryRow& row : rows) {
    for (const MemoryPoint& point : row.curve) {
      for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
        if (point.bytes.bytes[kind].value > 0) kinds.insert(static_cast<MemoryKind>(kind));
      }
    }
  }
}

// What the colours of the pictures mean, those that occur.
void AppendLegend(std::string& html, const TimelinePage& page) {
  std::set<absl::string_view> actions;
  std::set<MemoryKind> kinds;
  for (const TimelinePicture& picture : page.pictures) {
    for (const TimelineRow& row : picture.rows) {
      for (const Interval& interval : row.intervals) actions.insert(ColorOf(interval).css_class);
    }
    for (const auto* rows : {&picture.memory, &picture.elsewhere}) AddKinds(*rows, kinds);
  }
  absl::StrAppend(&html, "<p class=\"legend\">\n");
  for (const ActionColor& color : ActionColors()) {
    if (actions.contains(color.css_class)) AppendChip(html, color.hex, color.meaning);
  }
  absl::StrAppend(&html, "</p>\n");
  if (kinds.empty()) return;
  absl::StrAppend(&html, "<p class=\"legend\">\n");
  for (const MemoryKind kind : kinds) AppendChip(html, MemoryColor(kind), MemoryKindName(kind));
  absl::StrAppend(&html, "</p>\n");
}

void AppendRow(std::string& html, absl::string_view tag, const std::vector<std::string>& cells) {
  absl::StrAppend(&html, "<tr>");
  for (const std::string& cell : cells) {
    absl::StrAppend(&html, "<", tag, ">", XmlText(cell), "</", tag, ">");
  }
  absl::StrAppend(&html, "</tr>\n");
}

void AppendTable(std::string& html, const PageTable& table) {
  if (table.rows.empty()) return;
  absl::StrAppend(&html, "<h2>", XmlText(table.title), "</h2>\n<div class=\"wide\"><table>\n");
  AppendRow(html, "th", table.header);
  for (const std::vector<std::string>& row : table.rows) AppendRow(html, "td", row);
  absl::StrAppend(&html, "</table></div>\n");
}

}  // namespace

std::string TimelineHtml(const TimelinePage& page) {
  std::string html = absl::StrCat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>",
      XmlText(page.title), "</title>\n", kStyle, "</head><body>\n<h1>", XmlText(page.title),
      "</h1>\n");
  if (!page.lead.empty()) absl::StrAppend(&html, "<p>", XmlText(page.lead), "</p>\n");
  AppendFacts(html, page);
  for (const std::string& drawing : page.drawings) {
    absl::StrAppend(&html, "<div class=\"wide\">\n", drawing, "</div>\n");
  }
  AppendLegend(html, page);
  for (const TimelinePicture& picture : page.pictures) {
    absl::StrAppend(&html, "<div class=\"wide\">\n", TimelineSvg(picture), "</div>\n");
  }
  for (const PageTable& table : page.tables) AppendTable(html, table);
  absl::StrAppend(&html, "<output id=\"told\"></output>\n", kScript, "</body></html>\n");
  return html;
}

}  // namespace siphon
