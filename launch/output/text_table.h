#ifndef SIPHON_LAUNCH_OUTPUT_TEXT_TABLE_H_
#define SIPHON_LAUNCH_OUTPUT_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace siphon {

// Rows under a header, columns two blanks apart, the first flush left and the others flush right.
// Rows may be shorter than the header.
std::string TextTable(const std::vector<std::string>& header,
                      const std::vector<std::vector<std::string>>& rows);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_TEXT_TABLE_H_
