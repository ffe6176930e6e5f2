#include "launch/topology/server_file.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launch/topology/topology_file.h"
#include "planner/status.h"

namespace siphon {
namespace {

// The line without blanks and terminal colours before its first word.
absl::string_view FirstWords(absl::string_view line) {
  while (!line.empty()) {
    if (absl::ascii_isspace(static_cast<unsigned char>(line[0]))) {
      line.remove_prefix(1);
    } else if (line[0] == '\x1b') {  // up to the letter that ends the sequence
      while (!line.empty() && !absl::ascii_isalpha(static_cast<unsigned char>(line[0]))) {
        line.remove_prefix(1);
      }
      if (!line.empty()) line.remove_prefix(1);
    } else {
      break;
    }
  }
  return line;
}

// "GPU12" and a blank or the line's end.
bool BeginsWithDevice(absl::string_view line) {
  line = FirstWords(line);
  if (!absl::ConsumePrefix(&line, "GPU")) return false;
  size_t digits = 0;
  while (digits < line.size() && absl::ascii_isdigit(static_cast<unsigned char>(line[digits]))) {
    ++digits;
  }
  return digits > 0 &&
         (digits == line.size() || absl::ascii_isspace(static_cast<unsigned char>(line[digits])));
}

}  // namespace

ServerFormat FormatOfServer(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  if (!FirstWords(text).empty() && FirstWords(text)[0] == '<') return ServerFormat::kNcclXml;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (BeginsWithDevice(line)) return ServerFormat::kNvidiaSmi;
  }
  return ServerFormat::kTopologyFile;
}

absl::StatusOr<DiscoveredTopology> ParseServer(absl::string_view text, absl::string_view name,
                                               ServerFormat format, absl::string_view device) {
  switch (format) {
    case ServerFormat::kNvidiaSmi:
      return ParseNvidiaSmi(text, name, device);
    case ServerFormat::kNcclXml:
      return ParseNcclXml(text, name, device);
    case ServerFormat::kTopologyFile:
      break;
  }
  if (!device.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": is a topology file, which says itself what devices it has"));
  }
  SIPHON_ASSIGN_OR_RETURN(DiscoveredTopology read, ParseDiscovered(text, name));
  read.notes = TopologyRemarks(text);
  return read;
}

absl::StatusOr<DiscoveredTopology> FindServerPreset(absl::string_view name) {
  for (const TopologyPreset& preset : TopologyPresets()) {
    if (preset.name == name) return ParseServer(preset.text, name, ServerFormat::kTopologyFile, "");
  }
  return FindTopologyPreset(name).status();
}

absl::StatusOr<DiscoveredTopology> LoadServer(const std::string& path) {
  SIPHON_ASSIGN_OR_RETURN(const std::string text, ReadTopologyText(path));
  return ParseServer(text, path, FormatOfServer(text), "");
}

}  // namespace siphon
