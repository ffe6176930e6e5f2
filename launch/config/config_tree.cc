#include "launch/config/config_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/config/closest_name.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status ErrorAt(absl::string_view name, int line, int column, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(name, ":", line, ":", column, ": ", problem));
}

// Length of the UTF-8 character at the start of `text`, 0 when it is none (overlong forms,
// surrogates and values beyond U+10FFFF are none).
size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<unsigned char>(text[i]); };
  const uint32_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  uint32_t code = first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? 0 : length;
}

// Is a tab that stands before a line's first word harmless, because no word follows?
bool RestIsBlank(absl::string_view rest) {
  const size_t word = rest.find_first_not_of(" \t\r");
  return word == absl::string_view::npos || rest[word] == '\n' || rest[word] == '#';
}

absl::Status CheckCharacters(absl::string_view text, absl::string_view name) {
  int line = 1;
  int column = 1;
  bool indentation = true;
  for (size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    const size_t length = CharacterLength(text.substr(at));
    if (length == 0) {
      return ErrorAt(name, line, column,
                     absl::StrFormat("byte 0x%02x is not UTF-8; save the file as UTF-8", c));
    }
    if (c == 0) {
      return ErrorAt(name, line, column, "a NUL byte; a job file is text, this looks binary");
    }
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
      return ErrorAt(name, line, column, absl::StrFormat("control character 0x%02x; remove it", c));
    }
    if (c == '\t' && indentation && !RestIsBlank(text.substr(at))) {
      return ErrorAt(name, line, column, "a tab in the indentation; indent with spaces");
    }
    if (c != ' ') indentation = false;  // a tab that passed has nothing after it in this line
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
      indentation = true;
    }
    at += length;
  }
  return absl::OkStatus();
}

// Builds the tree from the parser's events. It keeps the first error and then ignores what follows,
// since a handler cannot stop the parser.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(absl::string_view name) : name_(name) {}

  const absl::Status& status() const { return status_; }
  ConfigNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (Accept(mark, "", anchor)) Add(NodeAt(mark, ConfigNode::Kind::kEmpty));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark, "an alias; a job file has no aliases, write the value itself");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!Accept(mark, tag, anchor)) return;
    ConfigNode node = NodeAt(mark, ConfigNode::Kind::kScalar);
    node.text = value;
    node.quoted = tag == "!";
    Add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, ConfigNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, ConfigNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  static ConfigNode NodeAt(const YAML::Mark& mark, ConfigNode::Kind kind) {
    ConfigNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void Fail(const YAML::Mark& mark, absl::string_view problem) {
    if (status_.ok()) status_ = ErrorAt(name_, mark.line + 1, mark.column + 1, problem);
  }

  bool Accept(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) Fail(mark, "an anchor; a job file has no anchors, write the value itself");
    // The parser marks plain nodes "?" and quoted ones "!".
    if (!tag.empty() && tag != "?" && tag != "!") {
      Fail(mark, absl::StrCat("tag ", QuoteForMessage(tag), "; a job file has no tags, remove it"));
    }
    return status_.ok();
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            ConfigNode::Kind kind) {
    if (!Accept(mark, tag, anchor)) return;
    if (open_.size() == kDeepestConfig) {
      Fail(mark, absl::StrCat("nested deeper than ", kDeepestConfig,
                              " levels; a job file has sections, keys and lists"));
      return;
    }
    open_.push_back(NodeAt(mark, kind));
  }

  void Close() {
    if (!status_.ok()) return;
    ConfigNode node = std::move(open_.back());
    open_.pop_back();
    Add(std::move(node));
  }

  void Add(ConfigNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    ConfigNode& parent = open_.back();
    const bool is_key =
        parent.kind == ConfigNode::Kind::kMap && parent.keys.size() == parent.items.size();
    if (is_key && node.kind != ConfigNode::Kind::kScalar) {
      status_ = ErrorAt(name_, node.line, node.column, "a key that is no word; write 'key: value'");
      return;
    }
    (is_key ? parent.keys : parent.items).push_back(std::move(node));
  }

  std::string name_;
  absl::Status status_;
  ConfigNode root_;
  std::vector<ConfigNode> open_;  // from the root to the node being read
};

// yaml-cpp's words for what people meet most, said so that they can be acted on.
std::string Explain(const std::string& message) {
  const char* advice = "check quotes, brackets and indentation around here";
  if (absl::StrContains(message, "end of map") || absl::StrContains(message, "end of sequence")) {
    advice = "close the bracket, or indent the line like the keys around it";
  }
  if (absl::StrContains(message, "in scalar")) {
    return "not YAML: a quote is opened above and not closed; close it";
  }
  return absl::StrCat("not YAML: ", message, "; ", advice);
}

// yaml-cpp takes no tab at the start of a line, not even of an empty one. Tabs before words were
// refused. It also takes a quote that nothing closes for closed by the end of the file, and so
// swallows all that follows; the mark of the document's end makes it notice.
std::string ForParser(absl::string_view text) {
  std::string all(text);
  bool indentation = true;
  for (char& c : all) {
    if (c == '\t' && indentation) c = ' ';
    indentation = c == '\n' || (indentation && c == ' ');
  }
  return all + (absl::EndsWith(text, "\n") ? "...\n" : "\n...\n");
}

}  // namespace

absl::StatusOr<ConfigNode> ParseConfigTree(absl::string_view text, absl::string_view name) {
  if (text.size() > kLargestConfigBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": ", text.size(), " bytes; a job file has at most ", kLargestConfigBytes));
  }
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
  SIPHON_RETURN_IF_ERROR(CheckCharacters(text, name));
  TreeBuilder builder(name);
  try {
    std::istringstream stream(ForParser(text));
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    if (!builder.status().ok()) return builder.status();
    ConfigNode root = builder.TakeRoot();
    if (parser.HandleNextDocument(builder)) {
      const ConfigNode second = builder.TakeRoot();
      return ErrorAt(name, second.line, second.column,
                     "a second document; a job file has one, remove the '---'");
    }
    return root;
  } catch (const YAML::Exception& error) {
    if (!builder.status().ok()) return builder.status();  // it came earlier in the file
    return ErrorAt(name, error.mark.line + 1, error.mark.column + 1, Explain(error.msg));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(name, ": yaml-cpp: ", error.what()));
  }
}

}  // namespace siphon
