#ifndef SIPHON_LAUNCH_OUTPUT_TEXT_FILE_H_
#define SIPHON_LAUNCH_OUTPUT_TEXT_FILE_H_

#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siphon {

// Replaces the file at `path`, or what a link there leads to, by one with `text`; a reader sees the
// old one or the new one, whole. Devices, pipes and what standard output or error is (/dev/stdout)
// are written to as they are. Errors: ResourceExhausted if the disk is full; InvalidArgument if the
// path cannot be written.
absl::Status WriteTextFile(const std::string& path, absl::string_view text);

// Whether the path can be written, as far as that is known without writing: so that nobody
// calculates for minutes what cannot be kept then. Errors: InvalidArgument as WriteTextFile; where
// the folder is the reason, it is named.
absl::Status CheckCanWrite(const std::string& path);

// Where an option lets something be written; empty: it was not given.
struct OutputOption {
  absl::string_view flag;
  std::string path;
};
// CheckCanWrite of all that were given. Errors: likewise, the option named.
absl::Status CheckOutputs(std::initializer_list<OutputOption> options);

// Writes all of `text` to an open file. Errors as above; `path` is for the message.
absl::Status WriteAll(int file, absl::string_view text, const std::string& path);

// The file's text; empty if there is no such file. Errors: InvalidArgument if it cannot be read.
absl::StatusOr<std::string> ReadTextFileIfThere(const std::string& path);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_TEXT_FILE_H_
