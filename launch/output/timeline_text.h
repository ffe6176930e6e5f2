#ifndef SIPHON_LAUNCH_OUTPUT_TIMELINE_TEXT_H_
#define SIPHON_LAUNCH_OUTPUT_TIMELINE_TEXT_H_

#include <string>

#include "launch/output/timeline_picture.h"

namespace siphon {

enum class TextColors { kNone, kTerminal };

// The rows of a picture as lines of at most `columns` letters in proportion to time, under a scale:
// each action begins with its name, cut where it is short, and goes on in the letter of its kind (=
// forward, # backward, - input backward, + weight backward), or its colour; a dot is idle. Where
// several actions share a letter's time, it shows the one that takes most of it.
std::string TimelinePictureText(const TimelinePicture& picture, int columns, TextColors colors);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_TIMELINE_TEXT_H_
