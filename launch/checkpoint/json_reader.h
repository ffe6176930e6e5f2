#ifndef SIPHON_LAUNCH_CHECKPOINT_JSON_READER_H_
#define SIPHON_LAUNCH_CHECKPOINT_JSON_READER_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siphon {

// Parses JSON strictly: a key that is twice in one object, more than 16 levels, and everything
// after the value are errors. Errors: InvalidArgument with the byte or the key.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text);

// Indented by 2, with a newline at the end. Errors: InvalidArgument when a string is not UTF-8.
absl::StatusOr<std::string> JsonText(const nlohmann::json& json);

// Takes typed values out of an object. The first value that is missing or of another type is
// remembered, and what is asked for afterwards is empty, so that a caller looks at status() once,
// at the end. Not thread-safe.
class ObjectReader {
 public:
  // `place` names the object in messages, empty for the whole file. The JSON must outlive the
  // reader.
  ObjectReader(const nlohmann::json& json, std::string place);

  int64_t Integer(const std::string& key);  // a whole number >= 0
  int64_t SignedInteger(const std::string& key);
  std::string Text(const std::string& key);
  std::string Lines(const std::string& key);     // a list of lines, joined
  uint64_t ChecksumOf(const std::string& key);   // 16 hexadecimal digits
  std::string FileName(const std::string& key);  // text that is a name without a folder
  // The object under a key; an empty one if it is not there or none.
  const nlohmann::json& Object(const std::string& key);
  bool Has(const std::string& key) const;

  absl::Status status() const { return status_; }
  // Remembers an error, if it is the first.
  void Fail(absl::string_view what);

 private:
  const nlohmann::json* Find(const std::string& key);
  void WrongType(const std::string& key, const nlohmann::json& value, absl::string_view wanted);

  const nlohmann::json& json_;
  std::string place_;
  absl::Status status_;
};

// OK for a plain file name: no folder in it, so that a file cannot point outside its own folder.
absl::Status CheckFileName(absl::string_view name);

// A list of the lines of a text, from which Lines() makes exactly this text again.
nlohmann::json JsonLines(absl::string_view text);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_JSON_READER_H_
