#ifndef SIPHON_LAUNCH_OUTPUT_TEXT_TABLE_H_
#define SIPHON_LAUNCH_OUTPUT_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace siphon {

// Whether the last column has words, to be read from the left, or numbers.
enum class LastColumn { kNumbers, kWords };

// Rows under a header, columns two blanks apart, the first flush left and the others flush right,
// but for words in the last. Rows may be shorter than the header.
std::string TextTable(const std::vector<std::string>& header,
                      const std::vector<std::vector<std::string>>& rows,
                      LastColumn last = LastColumn::kNumbers);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_TEXT_TABLE_H_
