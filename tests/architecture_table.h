#ifndef SIPHON_TESTS_ARCHITECTURE_TABLE_H_
#define SIPHON_TESTS_ARCHITECTURE_TABLE_H_

#include <regex>
#include <set>
#include <string>
#include <vector>

namespace siphon {

// An area is a folder with rules of its own; the longest matching prefix counts.
struct Area {
  std::string prefix;
  std::set<std::string> may_use;  // other areas
  bool pure;                      // no input or output, clock, thread, or unseeded random numbers
};

const std::vector<Area>& Areas();

// A library enters through files whose path matches one of the doors.
struct Door {
  std::regex name;  // of the header, or of the CMake target
  std::vector<std::string> paths;
};

const std::vector<Door>& HeaderDoors();
const std::vector<Door>& LinkDoors();

}  // namespace siphon

#endif  // SIPHON_TESTS_ARCHITECTURE_TABLE_H_
