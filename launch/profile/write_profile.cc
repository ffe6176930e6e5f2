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
    const bool zero =
        key.time != nullptr ? layer.*key.time == Nanos(0) : layer.*key.size == Bytes(0);
    if (key.only_if_known && zero) continue;
    AppendLine(text, "    ", key.name,
               key.time != nullptr ? WriteValue(layer.*key.time) : WriteValue(layer.*key.size));
  }
  if (layer.saved.empty()) return;
  absl::StrAppend(&text, "    saved:\n");
  for (const SavedTensor& tensor : layer.saved) {
    absl::StrAppend(&text, "      - {name: ", WriteValue(tensor.name),
                    ", bytes: ", WriteValue(tensor.bytes));
    if (tensor.made_ppm > 0) absl::StrAppend(&text, ", made_ppm: ", tensor.made_ppm);
    absl::StrAppend(&text, "}\n");
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
  const TransportCosts& transport = profile.transport;
  if (transport != TransportCosts{}) {
    AppendLine(text, "", "link_latency", WriteValue(transport.latency));
    AppendLine(text, "", "link_bytes_per_second", WriteValue(transport.rate.value));
  }
  if (transport.copy_rate.value > 0) {
    text += "# Of a worker's own copy of a message, out of its memory or into it.\n";
    AppendLine(text, "", "copy_bytes_per_second", WriteValue(transport.copy_rate.value));
  }
  if (transport.swap_rate.value > 0) {
    text += "# Of a core that copies tensors out of a worker's memory, or back.\n";
    AppendLine(text, "", "swap_bytes_per_second", WriteValue(transport.swap_rate.value));
  }
  if (!profile.cores_together.empty()) {
    text +=
        "# What 1, 2, ... workers get computed at the same time, in thousandths of one alone; more "
        "workers\n# share what the last of these get.\n";
    AppendLine(text, "", "cores_together", WriteValue(profile.cores_together));
  }
  absl::StrAppend(&text, "layers:\n");
  for (const LayerProfile& layer : profile.model.layers) AppendLayer(text, layer);
  return text;
}

}  // namespace siphon
