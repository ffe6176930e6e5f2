#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "launch/config/closest_name.h"
#include "launch/config/config_map.h"
#include "launch/config/config_tree.h"
#include "launch/config/config_values.h"
#include "launch/config/read_text_file.h"
#include "launch/profile/layer_keys.h"
#include "launch/profile/profile_file.h"
#include "planner/status.h"

namespace siphon {
namespace {

// A key whose value is a list of maps.
template <typename Item>
MapKey ListKey(absl::string_view file, absl::string_view name, std::vector<Item>& into,
               absl::Status (*read_item)(absl::string_view file, const ConfigNode& node,
                                         Item& item)) {
  const auto read = [file, name, &into, read_item](const ConfigNode& list) -> absl::Status {
    if (list.kind != ConfigNode::Kind::kList) {
      return ConfigErrorAt(
          file, list,
          absl::StrCat(name, ": is ", Describe(list), "; write a list of '- name: ...'"));
    }
    std::set<std::string> names;
    for (const ConfigNode& node : list.items) {
      Item item;
      SIPHON_RETURN_IF_ERROR(read_item(file, node, item));
      if (!names.insert(item.name).second) {
        return ConfigErrorAt(file, node,
                             absl::StrCat(name, ": ", QuoteForMessage(item.name),
                                          " stands twice; names are unique"));
      }
      into.push_back(std::move(item));
    }
    return absl::OkStatus();
  };
  return {.name = std::string(name), .read = read};
}

absl::Status ReadSaved(absl::string_view file, const ConfigNode& node, SavedTensor& tensor) {
  constexpr int64_t kMillion = 1'000'000;
  int64_t made_ppm = 0;
  SIPHON_RETURN_IF_ERROR(ReadConfigMap(
      file, node, "a saved tensor",
      {Required(ValueKey(file, "name", tensor.name)),
       Required(ValueKey(file, "bytes", tensor.bytes)), ValueKey(file, "made_ppm", made_ppm)}));
  if (made_ppm < 0 || made_ppm > kMillion) {
    return ConfigErrorAt(file, node,
                         absl::StrCat("made_ppm: is ", made_ppm, "; must be from 0 to ", kMillion));
  }
  tensor.made_ppm = static_cast<int>(made_ppm);
  return absl::OkStatus();
}

bool HasKey(const ConfigNode& layer, absl::string_view name) {
  return absl::c_any_of(layer.keys, [name](const ConfigNode& key) { return key.text == name; });
}

// Of what its parameters take: a layer without any may have an input_backward alone.
bool HasBackward(const ConfigNode& layer) {
  return HasKey(layer, "weight_backward") || HasKey(layer, "whole_backward");
}

// What takes time in every step has its time written, were it 0: one that is missing would be a
// mistake that nobody sees.
absl::Status CheckHasTimes(absl::string_view file, const ConfigNode& node,
                           const LayerProfile& layer) {
  const auto refuse = [&](absl::string_view problem) {
    return ConfigErrorAt(file, node,
                         absl::StrCat("layer ", QuoteForMessage(layer.name), " has ", problem));
  };
  if (!HasKey(node, "forward")) {
    return refuse("no 'forward'; write what a microbatch takes there, as in 'forward: 2ms'");
  }
  if (layer.parameters == Bytes(0)) return absl::OkStatus();
  if (!HasKey(node, "optimizer")) {
    return refuse("parameters, but no 'optimizer'; write what an update of them takes");
  }
  if (!HasBackward(node)) {
    return refuse(
        "parameters, but no backward; write what their gradients of a microbatch take, "
        "'weight_backward', beside 'input_backward', or 'whole_backward' for both at once");
  }
  return absl::OkStatus();
}

absl::Status ReadLayer(absl::string_view file, const ConfigNode& node, LayerProfile& layer) {
  std::vector<MapKey> keys = {Required(ValueKey(file, "name", layer.name))};
  for (const LayerKey& key : LayerKeys()) {
    keys.push_back(key.time != nullptr ? ValueKey(file, key.name, layer.*key.time)
                                       : ValueKey(file, key.name, layer.*key.size));
  }
  keys.push_back(ListKey(file, "saved", layer.saved, ReadSaved));
  SIPHON_RETURN_IF_ERROR(ReadConfigMap(file, node, "a layer", keys));
  SIPHON_RETURN_IF_ERROR(CheckHasTimes(file, node, layer));
  int made = 0;
  for (const SavedTensor& tensor : layer.saved) {
    if (tensor.made_ppm < made) {
      return ConfigErrorAt(
          file, node,
          absl::StrCat("made_ppm: saved tensor '", tensor.name, "' has ", tensor.made_ppm,
                       ", the one before ", made, "; they are in the order of saving"));
    }
    made = tensor.made_ppm;
  }
  const Bytes saved = SavedBytes(layer);
  for (const auto& [key, part] : {std::pair("saved_input", layer.saved_input),
                                  std::pair("saved_output", layer.saved_output)}) {
    if (part <= saved) continue;
    return ConfigErrorAt(file, node,
                         absl::StrCat(key, ": is ", FormatBytes(part), ", but the layer saves ",
                                      FormatBytes(saved), "; it is a part of 'saved'"));
  }
  return absl::OkStatus();
}

void TakePlaces(const ConfigNode& root, ProfileFile& file) {
  for (size_t key = 0; key < root.keys.size(); ++key) {
    const ConfigNode& value = root.items[key];
    if (root.keys[key].text == "model") file.model_place = {value.line, value.column};
    if (root.keys[key].text == "microbatch") file.microbatch_place = {value.line, value.column};
    if (root.keys[key].text != "layers") continue;
    file.layers_place = {value.line, value.column};
    for (const ConfigNode& layer : value.items) {
      file.places.push_back(
          {layer.line, layer.column, HasKey(layer, "optimizer"), HasBackward(layer)});
    }
  }
}

absl::Status CheckMachine(const ProfileFile& file, absl::string_view name) {
  const TransportCosts& transport = file.transport;
  for (const auto& [key, rate] : {std::pair("link_bytes_per_second", transport.rate),
                                  std::pair("copy_bytes_per_second", transport.copy_rate),
                                  std::pair("swap_bytes_per_second", transport.swap_rate)}) {
    if (rate.value >= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", key, ": is ", rate.value, "; must not be negative (0: no limit)"));
  }
  for (size_t running = 1; running <= file.cores_together.size(); ++running) {
    const int64_t together = file.cores_together[running - 1];
    const auto most = static_cast<int64_t>(1000 * running);
    if (together >= 1 && together <= most) continue;
    return absl::InvalidArgumentError(absl::StrCat(name, ": cores_together: item ", running, " is ",
                                                   together, "; ", running, " workers get 1 to ",
                                                   most, " thousandths of a core together"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProfileFile> ParseProfile(absl::string_view text, absl::string_view name) {
  SIPHON_ASSIGN_OR_RETURN(const ConfigNode root, ParseConfigTree(text, name));
  ProfileFile file;
  ModelProfile& model = file.model;
  SIPHON_RETURN_IF_ERROR(
      ReadConfigMap(name, root, "a profile",
                    {ValueKey(name, "model", model.model), ValueKey(name, "device", model.device),
                     ValueKey(name, "source", model.source),
                     Required(ValueKey(name, "microbatch", model.microbatch)),
                     ValueKey(name, "link_latency", file.transport.latency),
                     ValueKey(name, "link_bytes_per_second", file.transport.rate.value),
                     ValueKey(name, "copy_bytes_per_second", file.transport.copy_rate.value),
                     ValueKey(name, "swap_bytes_per_second", file.transport.swap_rate.value),
                     ValueKey(name, "cores_together", file.cores_together),
                     Required(ListKey(name, "layers", model.layers, ReadLayer))}));
  if (model.microbatch < 1) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": microbatch: is ", model.microbatch,
                                                   "; write how many samples it has, from 1 up"));
  }
  SIPHON_RETURN_IF_ERROR(CheckMachine(file, name));
  TakePlaces(root, file);
  if (model.layers.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ":", file.layers_place.line, ":", file.layers_place.column,
        ": layers: there are none; write a list of '- name: ...', the model's first layer first"));
  }
  return file;
}

absl::StatusOr<ProfileFile> LoadProfile(const std::string& path) {
  SIPHON_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, "profile"));
  return ParseProfile(text, path);
}

}  // namespace siphon
