#ifndef SIPHON_LAUNCH_OUTPUT_XML_TEXT_H_
#define SIPHON_LAUNCH_OUTPUT_XML_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace siphon {

// `text` with &, <, >, ' and " written so that they mean themselves in XML and HTML; characters
// that XML has not, and bytes that are no UTF-8, become '?'.
std::string XmlText(absl::string_view text);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_XML_TEXT_H_
