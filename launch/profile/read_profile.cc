#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/config/closest_name.h"
#include "launch/config/config_tree.h"
#include "launch/config/config_values.h"
#include "launch/profile/layer_keys.h"
#include "launch/profile/profile_file.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status ErrorAt(absl::string_view name, const ConfigNode& node, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ":", node.line, ":", node.column, ": ", problem));
}

// What a map may have: each key's name and what reads its value (errors without the place, or with
// one when the value has parts of its own).
struct KeyReader {
  absl::string_view name;
  std::function<absl::Status(const ConfigNode& value)> read;
  bool has_own_places = false;
  bool required = false;
};

template <typename T>
KeyReader Value(absl::string_view name, T& into) {
  return {.name = name,
          .read = [&into](const ConfigNode& value) { return ReadValue(value, into); }};
}
template <typename T>
KeyReader Required(absl::string_view name, T& into) {
  KeyReader reader = Value(name, into);
  reader.required = true;
  return reader;
}

absl::Status UnknownKey(absl::string_view file, const ConfigNode& key,
                        const std::vector<KeyReader>& readers) {
  std::vector<std::string> known;
  for (const KeyReader& reader : readers) known.emplace_back(reader.name);
  const std::string closest = ClosestName(key.text, known);
  return ErrorAt(file, key,
                 absl::StrCat("unknown key ", QuoteForMessage(key.text), "; ",
                              closest.empty() ? absl::StrCat("known: ", absl::StrJoin(known, ", "))
                                              : absl::StrCat("did you mean '", closest, "'?")));
}

absl::Status ReadMap(absl::string_view file, const ConfigNode& map, absl::string_view what,
                     const std::vector<KeyReader>& readers) {
  if (map.kind != ConfigNode::Kind::kMap) {
    return ErrorAt(
        file, map,
        absl::StrCat("is ", Describe(map), "; ", what, " is written as 'key: value' lines"));
  }
  std::set<absl::string_view> seen;
  for (size_t i = 0; i < map.keys.size(); ++i) {
    const ConfigNode& key = map.keys[i];
    const KeyReader* found = nullptr;
    for (const KeyReader& reader : readers) {
      if (reader.name == key.text) found = &reader;
    }
    if (found == nullptr) return UnknownKey(file, key, readers);
    if (!seen.insert(found->name).second) {
      return ErrorAt(file, key, absl::StrCat(key.text, ": stands twice; keep one of them"));
    }
    const absl::Status read = found->read(map.items[i]);
    if (read.ok()) continue;
    if (found->has_own_places) return read;
    return ErrorAt(file, map.items[i], absl::StrCat(key.text, ": ", read.message()));
  }
  for (const KeyReader& reader : readers) {
    if (!reader.required || seen.contains(reader.name)) continue;
    return ErrorAt(file, map, absl::StrCat(what, " has no '", reader.name, "'; it needs one"));
  }
  return absl::OkStatus();
}

// A key whose value is a list of maps.
template <typename Item>
KeyReader List(absl::string_view file, absl::string_view name, std::vector<Item>& into,
               absl::Status (*read_item)(absl::string_view file, const ConfigNode& node,
                                         Item& item)) {
  const auto read = [file, name, &into, read_item](const ConfigNode& list) -> absl::Status {
    if (list.kind != ConfigNode::Kind::kList) {
      return ErrorAt(
          file, list,
          absl::StrCat(name, ": is ", Describe(list), "; write a list of '- name: ...'"));
    }
    std::set<std::string> names;
    for (const ConfigNode& node : list.items) {
      Item item;
      SIPHON_RETURN_IF_ERROR(read_item(file, node, item));
      if (!names.insert(item.name).second) {
        return ErrorAt(file, node,
                       absl::StrCat(name, ": ", QuoteForMessage(item.name),
                                    " stands twice; names are unique"));
      }
      into.push_back(std::move(item));
    }
    return absl::OkStatus();
  };
  return {.name = name, .read = read, .has_own_places = true};
}

absl::Status ReadSaved(absl::string_view file, const ConfigNode& node, SavedTensor& tensor) {
  return ReadMap(file, node, "a saved tensor",
                 {Required("name", tensor.name), Required("bytes", tensor.bytes)});
}

absl::Status ReadLayer(absl::string_view file, const ConfigNode& node, LayerProfile& layer) {
  std::vector<KeyReader> readers = {Required("name", layer.name)};
  for (const LayerKey& key : LayerKeys()) {
    readers.push_back(key.time != nullptr ? Value(key.name, layer.*key.time)
                                          : Value(key.name, layer.*key.size));
  }
  readers.push_back(List(file, "saved", layer.saved, ReadSaved));
  return ReadMap(file, node, "a layer", readers);
}

}  // namespace

absl::StatusOr<ProfileFile> ParseProfile(absl::string_view text, absl::string_view name) {
  SIPHON_ASSIGN_OR_RETURN(const ConfigNode root, ParseConfigTree(text, name));
  ProfileFile file;
  ModelProfile& model = file.model;
  KeyReader layers = List(name, "layers", model.layers, ReadLayer);
  layers.required = true;
  SIPHON_RETURN_IF_ERROR(ReadMap(
      name, root, "a profile",
      {Value("model", model.model), Value("device", model.device), Value("source", model.source),
       Required("microbatch", model.microbatch), Value("link_latency", file.transport.latency),
       Value("link_bytes_per_second", file.transport.rate.value), std::move(layers)}));
  if (model.microbatch < 1) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": microbatch: is ", model.microbatch,
                                                   "; write how many samples it has, from 1 up"));
  }
  if (file.transport.rate.value < 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": link_bytes_per_second: is ",
                                                   file.transport.rate.value,
                                                   "; must not be negative (0: no limit)"));
  }
  return file;
}

absl::StatusOr<ProfileFile> LoadProfile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read profile '", path, "'"));
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) return absl::NotFoundError(absl::StrCat("cannot read profile '", path, "'"));
  return ParseProfile(text, path);
}

}  // namespace siphon
