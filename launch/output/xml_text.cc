#include "launch/output/xml_text.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// Length of the UTF-8 character that `text` begins with, 0 when it is none that XML has.
size_t CharacterLength(absl::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' ? 1 : 0;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string XmlText(absl::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const absl::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length == 0) {
      result += '?';
    } else if (character == "&") {
      result += "&amp;";
    } else if (character == "<") {
      result += "&lt;";
    } else if (character == ">") {
      result += "&gt;";
    } else if (character == "\"") {
      result += "&quot;";
    } else if (character == "'") {
      result += "&#39;";
    } else {
      absl::StrAppend(&result, character);
    }
    text.remove_prefix(character.size());
  }
  return result;
}

}  // namespace siphon
