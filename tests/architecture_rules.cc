#include "tests/architecture_rules.h"

#include <algorithm>
#include <cstddef>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/architecture_table.h"

namespace siphon {
namespace {

constexpr int kMostLines = 600;

const Area* AreaOf(const std::string& path) {
  const Area* longest = nullptr;
  for (const Area& area : Areas()) {
    if (!absl::StartsWith(path, area.prefix)) continue;
    if (longest == nullptr || area.prefix.size() > longest->prefix.size()) longest = &area;
  }
  return longest;
}

bool MayUse(const Area& user, const Area& used) {
  return &user == &used || user.may_use.contains(used.prefix);
}

// The door for `name`, if it is a third-party library's; then whether `path` is one of its places.
enum class Entry { kNoDoor, kAllowed, kWrongDoor };

Entry Enter(const std::vector<Door>& doors, const std::string& name, const std::string& path,
            std::string& places) {
  for (const Door& door : doors) {
    if (!std::regex_match(name, door.name)) continue;
    places = absl::StrJoin(door.paths, "*, ") + "*";
    const auto is_here = [&](const std::string& prefix) { return absl::StartsWith(path, prefix); };
    return std::any_of(door.paths.begin(), door.paths.end(), is_here) ? Entry::kAllowed
                                                                      : Entry::kWrongDoor;
  }
  return Entry::kNoDoor;
}

bool IsImpure(const std::string& header) {
  static const auto* const impure = new std::set<std::string>{
      "atomic",  "chrono",      "condition_variable", "cstdio", "ctime",  "filesystem",
      "fstream", "future",      "iostream",           "mutex",  "random", "thread",
      "csignal", "shared_mutex"};
  return impure->contains(header);
}

// What the C library and the kernel bring; told from third-party headers by name, as both end in
// .h.
bool IsSystemHeader(const std::string& header) {
  static const std::regex system(
      "(sys|linux|net|netinet|arpa|asm)/"
      ".*|(unistd|fcntl|signal|dlfcn|errno|sched|poll|pthread|dirent|"
      "spawn|time|termios|immintrin|pwd|grp|execinfo|limits|getopt|netdb|semaphore|string|stdlib|"
      "stdio|math|stdint|stddef|ucontext|link|elf|locale|malloc|syslog|ifaddrs)\\.h");
  return std::regex_match(header, system);
}

// The one place in a pure folder that prints: a broken promise ends the process.
bool MayBeImpure(const std::string& path) { return path == "planner/status.cc"; }

std::string CheckSystemInclude(const Area& area, const std::string& path,
                               const std::string& header) {
  std::string places;
  switch (Enter(HeaderDoors(), header, path, places)) {
    case Entry::kAllowed:
      return "";
    case Entry::kWrongDoor:
      return absl::StrCat("<", header, "> enters through ", places, " only");
    case Entry::kNoDoor:
      break;
  }
  if (absl::StartsWith(header, "absl/")) return "";
  const bool standard = !absl::StrContains(header, '/') && !absl::EndsWith(header, ".h");
  if (!standard && !IsSystemHeader(header)) {
    return absl::StrCat("<", header, "> has no door: give its library one in ",
                        "tests/architecture_table.cc");
  }
  if (area.pure && !MayBeImpure(path) && (!standard || IsImpure(header))) {
    return absl::StrCat("<", header, "> in ", area.prefix,
                        ", which is pure: no input or output, clock, threads or global random "
                        "numbers");
  }
  return "";
}

std::string CheckOwnInclude(const Area& area, const std::string& path, const std::string& header) {
  if (absl::StartsWith(header, "absl/")) return "";
  std::string places;
  switch (Enter(HeaderDoors(), header, path, places)) {
    case Entry::kAllowed:
      return "";
    case Entry::kWrongDoor:
      return absl::StrCat("\"", header, "\" enters through ", places, " only");
    case Entry::kNoDoor:
      break;
  }
  const Area* used = AreaOf(header);
  if (used == nullptr) {
    return absl::StrCat("\"", header, "\" is not rooted at the project (\"planner/action.h\")");
  }
  if (MayUse(area, *used)) return "";
  return absl::StrCat(area.prefix, " may not include ", used->prefix, " (\"", header, "\")");
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

struct Command {
  std::string name;
  std::vector<std::string> arguments;
  int line = 0;
};

// The calls of a CMakeLists.txt. Arguments hold no nested parentheses in what is looked at here.
std::vector<Command> CommandsOf(const std::string& text) {
  static const std::regex comment("#[^\n]*");
  static const std::regex call("([A-Za-z_]+)\\s*\\(([^()]*)\\)");
  const std::string code = std::regex_replace(text, comment, "");
  std::vector<Command> commands;
  for (std::sregex_iterator match(code.begin(), code.end(), call), end; match != end; ++match) {
    const auto lines_before = std::count(code.begin(), code.begin() + match->position(), '\n');
    commands.push_back({(*match)[1], Words((*match)[2]), static_cast<int>(lines_before) + 1});
  }
  return commands;
}

bool IsKeyword(const std::string& word) {
  static const auto* const keywords = new std::set<std::string>{
      "PUBLIC", "PRIVATE", "INTERFACE", "LINKS", "PRIVATE_LINKS", "SOURCES"};
  return keywords->contains(word);
}

// What a command links: all after LINKS or PRIVATE_LINKS, or all of target_link_libraries but the
// target.
std::vector<std::string> LinksOf(const Command& command) {
  const bool is_library = command.name == "siphon_library";
  if (!is_library && command.name != "target_link_libraries") return {};
  std::vector<std::string> links;
  bool linking = !is_library;
  for (size_t place = 1; place < command.arguments.size(); ++place) {
    const std::string& word = command.arguments[place];
    if (is_library && IsKeyword(word)) linking = word != "SOURCES";
    if (linking && !IsKeyword(word)) links.push_back(word);
  }
  return links;
}

std::string CheckLink(const Area& area, const std::string& path, const std::string& link,
                      const std::map<std::string, std::string>& libraries) {
  std::string places;
  switch (Enter(LinkDoors(), link, path, places)) {
    case Entry::kAllowed:
      return "";
    case Entry::kWrongDoor:
      return absl::StrCat("links ", link, ", which enters through ", places, " only");
    case Entry::kNoDoor:
      break;
  }
  const auto found = libraries.find(link);
  if (found == libraries.end()) {
    return absl::StrCat("links ", link, ", which is neither a library of ours nor has a door in ",
                        "tests/architecture_table.cc");
  }
  const Area* used = AreaOf(found->second);
  if (used != nullptr && MayUse(area, *used)) return "";
  return absl::StrCat(area.prefix, " may not link ", link, " of ", found->second);
}

}  // namespace

std::vector<std::string> CheckSourceFile(const std::string& path, const std::string& text) {
  static const std::regex include("^\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"].*");
  std::vector<std::string> problems;
  const Area* area = AreaOf(path);
  if (area == nullptr) {
    return {absl::StrCat(path, ":1: no folder of the design holds this file")};
  }
  const bool is_test = area->prefix == "tests/";
  std::istringstream stream(text);
  int line_number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++line_number;
    std::smatch match;
    if (is_test || !absl::StrContains(line, "include") || !std::regex_match(line, match, include)) {
      continue;
    }
    const std::string problem = match[1] == "<" ? CheckSystemInclude(*area, path, match[2])
                                                : CheckOwnInclude(*area, path, match[2]);
    if (!problem.empty()) problems.push_back(absl::StrCat(path, ":", line_number, ": ", problem));
  }
  if (line_number > kMostLines) {
    problems.push_back(absl::StrCat(path, ":", line_number, ": ", line_number,
                                    " lines; a file is one idea and has at most ", kMostLines));
  }
  return problems;
}

std::map<std::string, std::string> TypesOf(const std::string& path, const std::string& text) {
  // As clang-format leaves them: what belongs to a namespace begins its line.
  static const std::regex opening("(inline )?namespace ?([\\w:]*) ?\\{.*");
  static const std::regex type(
      "(struct|class|union|enum class|enum) (alignas\\([^)]*\\) "
      ")?([A-Za-z_][\\w:]*)[^;{]*(\\{.*)?");
  std::map<std::string, std::string> types;
  std::vector<std::string> namespaces;
  std::istringstream stream(text);
  int line_number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++line_number;
    std::smatch match;
    if (std::regex_match(line, match, opening)) {
      namespaces.push_back(match[2]);
    } else if (absl::StartsWith(line, "}  // namespace") && !namespaces.empty()) {
      namespaces.pop_back();
    } else if (std::regex_match(line, match, type) && absl::c_count(namespaces, "") == 0) {
      std::vector<std::string> name = namespaces;
      name.push_back(match[3]);
      types.emplace(absl::StrJoin(name, "::"), absl::StrCat(path, ":", line_number));
    }
  }
  return types;
}

std::map<std::string, std::string> LibrariesOf(const std::string& path, const std::string& text) {
  std::map<std::string, std::string> libraries;
  const Area* area = AreaOf(path);
  if (area == nullptr) return libraries;
  for (const Command& command : CommandsOf(text)) {
    const bool defines = command.name == "siphon_library" || command.name == "add_library";
    if (defines && !command.arguments.empty()) libraries[command.arguments[0]] = area->prefix;
  }
  return libraries;
}

std::vector<std::string> CheckLinks(const std::string& path, const std::string& text,
                                    const std::map<std::string, std::string>& libraries) {
  std::vector<std::string> problems;
  const Area* area = AreaOf(path);
  if (area == nullptr || area->prefix == "tests/") return problems;
  for (const Command& command : CommandsOf(text)) {
    for (const std::string& link : LinksOf(command)) {
      const std::string problem = CheckLink(*area, path, link, libraries);
      if (problem.empty()) continue;
      problems.push_back(absl::StrCat(path, ":", command.line, ": ", problem));
    }
  }
  return problems;
}

}  // namespace siphon
