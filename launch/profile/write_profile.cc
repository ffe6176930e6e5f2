#include "absl/strings/str_cat.h"
#include "launch/config/config_values.h"
#include "launch/profile/layer_keys.h"
#include "launch/profile/profile_file.h"

namespace siphon {
namespace {

void AppendLine(std::string& text, absl::string_view indent, absl::string_view key,
                absl::string_view value) {
  absl::StrAppend(&text, indent, key, ": ", value, "\n");
}

void AppendLayer(std::string& text, const LayerProfile& layer) {
  AppendLine(text, "  - ", "name", WriteValue(layer.name));
  for (const LayerKey& key : LayerKeys()) {
    AppendLine(text, "    ", key.name,
               key.time != nullptr ? WriteValue(layer.*key.time) : WriteValue(layer.*key.size));
  }
  if (layer.saved.empty()) return;
  absl::StrAppend(&text, "    saved:\n");
  for (const SavedTensor& tensor : layer.saved) {
    absl::StrAppend(&text, "      - {name: ", WriteValue(tensor.name),
                    ", bytes: ", WriteValue(tensor.bytes), "}\n");
  }
}

}  // namespace

std::string WriteProfile(const ProfileFile& profile) {
  std::string text =
      "# Times and bytes of one microbatch on one device; parameters, gradients, optimizer_state "
      "and\n# optimizer are of the layer, whatever the microbatch.\n";
  AppendLine(text, "", "model", WriteValue(profile.model.model));
  AppendLine(text, "", "device", WriteValue(profile.model.device));
  AppendLine(text, "", "source", WriteValue(profile.model.source));
  AppendLine(text, "", "microbatch", WriteValue(profile.model.microbatch));
  if (profile.transport != TransportCosts{}) {
    AppendLine(text, "", "link_latency", WriteValue(profile.transport.latency));
    AppendLine(text, "", "link_bytes_per_second", WriteValue(profile.transport.rate.value));
  }
  absl::StrAppend(&text, "layers:\n");
  for (const LayerProfile& layer : profile.model.layers) AppendLayer(text, layer);
  return text;
}

}  // namespace siphon
