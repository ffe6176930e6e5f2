#include "launch/checkpoint/json_reader.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launch/checkpoint/checksum.h"
#include "planner/status.h"

namespace siphon {
namespace {

using Json = nlohmann::json;

constexpr int kMostLevels = 16;
constexpr size_t kShownCharacters = 40;  // of a wrong value

// Watches the parser for what it would silently accept.
class Strictness {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      if (depth >= kMostLevels && error_.empty()) {
        error_ = absl::StrCat("lists and objects nest deeper than ", kMostLevels, " levels");
      }
      if (depth >= kMostLevels) return false;
      keys_.resize(static_cast<size_t>(depth) + 1);
      keys_.back().clear();
    }
    if (event == Json::parse_event_t::key && !keys_.empty()) {
      keys_.resize(static_cast<size_t>(depth));
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second && error_.empty()) {
        error_ = absl::StrCat("the key '", key, "' is there twice");
      }
    }
    return true;
  }
  const std::string& error() const { return error_; }

 private:
  std::vector<std::set<std::string>> keys_;  // of the object at each depth
  std::string error_;
};

std::string Shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShownCharacters) text = text.substr(0, kShownCharacters) + "...";
  return text;
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  Strictness strictness;
  try {
    Json json = Json::parse(text.begin(), text.end(),
                            [&strictness](int depth, Json::parse_event_t event, Json& parsed) {
                              return strictness(depth, event, parsed);
                            });
    if (!strictness.error().empty()) return absl::InvalidArgumentError(strictness.error());
    return json;
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat("is not valid JSON at byte ", error.byte));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("is not usable JSON: ", error.what()));
  }
}

absl::StatusOr<std::string> JsonText(const Json& json) {
  try {
    return json.dump(2) + "\n";
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("a text is not UTF-8: ", error.what()));
  }
}

Json JsonLines(absl::string_view text) {
  return Json(std::vector<std::string>(absl::StrSplit(text, '\n')));
}

ObjectReader::ObjectReader(const Json& json, std::string place)
    : json_(json), place_(std::move(place)) {
  if (!json.is_object()) Fail(absl::StrCat("is ", Shown(json), ", not an object"));
}

void ObjectReader::Fail(absl::string_view what) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(place_.empty() ? std::string(what)
                                                      : absl::StrCat(place_, ": ", what));
}

bool ObjectReader::Has(const std::string& key) const {
  return json_.is_object() && json_.contains(key);
}

const Json* ObjectReader::Find(const std::string& key) {
  if (!status_.ok()) return nullptr;
  const auto found = json_.find(key);
  if (found != json_.end()) return &*found;
  Fail(absl::StrCat("has no '", key, "'"));
  return nullptr;
}

void ObjectReader::WrongType(const std::string& key, const Json& value, absl::string_view wanted) {
  Fail(absl::StrCat("'", key, "' is ", Shown(value), ", not ", wanted));
}

int64_t ObjectReader::SignedInteger(const std::string& key) {
  const Json* value = Find(key);
  if (value == nullptr) return 0;
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX);
  if (fits) return value->get<int64_t>();
  WrongType(key, *value, "a whole number of 64 bits");
  return 0;
}

int64_t ObjectReader::Integer(const std::string& key) {
  const int64_t value = SignedInteger(key);
  if (value >= 0) return value;
  Fail(absl::StrCat("'", key, "' is ", value, ", not a whole number >= 0"));
  return 0;
}

std::string ObjectReader::Text(const std::string& key) {
  const Json* value = Find(key);
  if (value == nullptr) return "";
  if (value->is_string()) return value->get<std::string>();
  WrongType(key, *value, "text");
  return "";
}

std::string ObjectReader::Lines(const std::string& key) {
  const Json* value = Find(key);
  if (value == nullptr) return "";
  if (!value->is_array()) {
    WrongType(key, *value, "a list of lines");
    return "";
  }
  std::vector<std::string> lines;
  for (const Json& line : *value) {
    if (!line.is_string()) {
      WrongType(key, *value, "a list of lines");
      return "";
    }
    lines.push_back(line.get<std::string>());
  }
  return absl::StrJoin(lines, "\n");
}

uint64_t ObjectReader::ChecksumOf(const std::string& key) {
  const Json* value = Find(key);
  if (value == nullptr) return 0;
  if (value->is_string()) {
    if (const auto checksum = ParseChecksum(value->get_ref<const std::string&>())) return *checksum;
  }
  WrongType(key, *value, "a checksum of 16 hexadecimal digits");
  return 0;
}

std::string ObjectReader::FileName(const std::string& key) {
  const std::string name = Text(key);
  const absl::Status status = CheckFileName(name);
  if (status_.ok() && !status.ok()) Fail(absl::StrCat("'", key, "': ", status.message()));
  return name;
}

const Json& ObjectReader::Object(const std::string& key) {
  static const Json* const empty = new Json(Json::object());
  const Json* value = Find(key);
  if (value == nullptr) return *empty;
  if (value->is_object()) return *value;
  WrongType(key, *value, "an object");
  return *empty;
}

absl::Status CheckFileName(absl::string_view name) {
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find('/') == absl::string_view::npos &&
                     name.find('\0') == absl::string_view::npos;
  if (plain) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is not the name of a file in the same folder"));
}

}  // namespace siphon
