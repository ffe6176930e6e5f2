#ifndef SIPHON_TESTS_ARCHITECTURE_RULES_H_
#define SIPHON_TESTS_ARCHITECTURE_RULES_H_

#include <map>
#include <string>
#include <vector>

namespace siphon {

// The rules of the source tree as functions over (path, text): who may include and link whom,
// through which files a third-party library enters, which types there are, how long a file may be.
// Paths are relative to the project ("planner/action.h"). Each function returns one line for every
// violation,
// "<path>:<line>: <what and why>".

// Includes of a .h, .cc, .cu or .def file, and its number of lines.
std::vector<std::string> CheckSourceFile(const std::string& path, const std::string& text);

// Every type that a C++ file defines outside classes and anonymous namespaces, "siphon::Action",
// with its "<path>:<line>". Two types of one name in one program are undefined behaviour that no
// linker notices.
std::map<std::string, std::string> TypesOf(const std::string& path, const std::string& text);

// Every library that a CMakeLists.txt defines, with the area of the tree that it belongs to.
std::map<std::string, std::string> LibrariesOf(const std::string& path, const std::string& text);

// Link edges of a CMakeLists.txt. `libraries`: those of all folders, by LibrariesOf.
std::vector<std::string> CheckLinks(const std::string& path, const std::string& text,
                                    const std::map<std::string, std::string>& libraries);

}  // namespace siphon

#endif  // SIPHON_TESTS_ARCHITECTURE_RULES_H_
