#ifndef SIPHON_LAUNCH_OUTPUT_TIMELINE_PAGE_H_
#define SIPHON_LAUNCH_OUTPUT_TIMELINE_PAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "launch/output/timeline_picture.h"

namespace siphon {

struct PageTable {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>>
      rows;  // as long as the header; the first cell names the row
};

struct TimelinePage {
  std::string title;
  std::string lead;                                        // a sentence under it; may be empty
  std::vector<std::pair<std::string, std::string>> facts;  // "step time", "12.3 ms"
  std::vector<std::string> drawings;                       // SVG, above the pictures
  std::vector<TimelinePicture> pictures;
  std::vector<PageTable> tables;  // those without rows are left out
};

// The page as one self-contained HTML file: it loads nothing, follows dark and light mode, and on a
// phone only the pictures and tables scroll sideways. Each action tells what it is when pointed at
// or touched.
std::string TimelineHtml(const TimelinePage& page);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_TIMELINE_PAGE_H_
