#ifndef SIPHON_LAUNCH_OUTPUT_TIMELINE_SVG_H_
#define SIPHON_LAUNCH_OUTPUT_TIMELINE_SVG_H_

#include <string>

#include "absl/strings/string_view.h"
#include "launch/output/timeline_picture.h"

namespace siphon {

// The picture as one self-contained SVG, which scales with the width that it is given and follows
// the reader's dark or light mode. Rows of coloured actions over a scale of time, each with a
// tooltip, then a curve a worker of its memory, one colour a kind, all on one scale.
//
// The text's length is bounded by the number of rows, whatever the number of intervals: those that
// are narrower than can be seen are drawn together, in the colour of most of them.
std::string TimelineSvg(const TimelinePicture& picture);

// Its width in its own units: shown at that many pixels, its letters have the usual size.
inline constexpr int kTimelineSvgWidth = 960;

// "#4387fd" of a kind of memory, as in the picture.
absl::string_view MemoryColor(MemoryKind kind);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_TIMELINE_SVG_H_
