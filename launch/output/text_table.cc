#include "launch/output/text_table.h"

#include <algorithm>
#include <cstddef>

namespace siphon {
namespace {

std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                 LastColumn last) {
  std::string line;
  for (size_t column = 0; column < cells.size(); ++column) {
    const std::string padding(widths[column] - cells[column].size(), ' ');
    const bool words = last == LastColumn::kWords && column + 1 == widths.size();
    if (column > 0) line += words ? "  " : "  " + padding;
    line += cells[column];
    if (column == 0) line += padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string TextTable(const std::vector<std::string>& header,
                      const std::vector<std::vector<std::string>>& rows, LastColumn last) {
  std::vector<size_t> widths(header.size(), 0);
  const auto widen = [&widths](const std::vector<std::string>& cells) {
    for (size_t column = 0; column < cells.size(); ++column) {
      widths[column] = std::max(widths[column], cells[column].size());
    }
  };
  widen(header);
  for (const auto& row : rows) widen(row);
  std::string text = Line(header, widths, last);
  for (const auto& row : rows) text += Line(row, widths, last);
  return text;
}

}  // namespace siphon
