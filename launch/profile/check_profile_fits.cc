// Whether a profile is of a job's model: plan_with_costs.h has the contract.

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "launch/profile/plan_with_costs.h"
#include "planner/memory/layer_uses.h"
#include "planner/status.h"

namespace siphon {
namespace {

class ProfileChecker {
 public:
  ProfileChecker(const ProfileFile& profile, const ModelSpec& model, absl::string_view path)
      : file_(profile), model_(model), path_(path) {}

  absl::Status Check(int64_t microbatch) const;

 private:
  absl::Status RefuseAt(const ProfilePlace& at, absl::string_view problem) const;
  // At a layer of the profile, or at none.
  absl::Status Refuse(int layer, absl::string_view problem) const;
  absl::Status CheckKind() const;
  absl::Status CheckNames() const;
  absl::Status CheckLayers(int64_t microbatch) const;
  // Of a microbatch.
  absl::Status CheckHandedOn(int layer, Bytes handed_on) const;
  absl::Status CheckParameters(int layer, int64_t owned) const;
  bool is_measured() const { return file_.model.source == "measured"; }
  int layers() const { return static_cast<int>(file_.model.layers.size()); }
  int wanted() const { return static_cast<int>(model_.layers.size()); }

  const ProfileFile& file_;
  const ModelSpec& model_;
  absl::string_view path_;
};

absl::Status ProfileChecker::RefuseAt(const ProfilePlace& at, absl::string_view problem) const {
  std::string place(path_);
  if (!path_.empty() && at.line > 0) absl::StrAppend(&place, ":", at.line, ":", at.column);
  return absl::InvalidArgumentError(
      absl::StrCat(place, place.empty() ? "" : ": ", problem, "; run siphon profile for this job"));
}

absl::Status ProfileChecker::Refuse(int layer, absl::string_view problem) const {
  const bool is_known = layer >= 0 && layer < static_cast<int>(file_.places.size());
  return RefuseAt(is_known ? file_.places[layer] : ProfilePlace(), problem);
}

absl::Status ProfileChecker::CheckKind() const {
  const std::string& kind = model_.options.kind;
  // It is for people: what is no kind of ours says nothing.
  const bool is_kind = absl::c_linear_search(KnownModelKinds(), file_.model.model);
  if (!is_kind || kind.empty() || file_.model.model == kind) return absl::OkStatus();
  return RefuseAt(file_.model_place,
                  absl::StrCat("the profile is of a model of kind '", file_.model.model,
                               "', the job's is '", kind, "'"));
}

absl::Status ProfileChecker::CheckNames() const {
  const int common = std::min(layers(), wanted());
  int differs = 0;
  while (differs < common && file_.model.layers[differs].name == model_.layers[differs].name) {
    ++differs;
  }
  if (differs == layers() && differs == wanted()) return absl::OkStatus();
  const std::string counts =
      layers() == wanted()
          ? ""
          : absl::StrCat("the profile has ", layers(), " layers, the model ", wanted(), ": ");
  if (differs == wanted()) {
    return Refuse(differs, absl::StrCat(counts, "'", file_.model.layers[differs].name,
                                        "' comes after the model's last"));
  }
  const std::string& name = model_.layers[differs].name;
  if (differs == layers()) {
    return Refuse(differs - 1, absl::StrCat(counts, "'", name, "' is missing at the end"));
  }
  const std::string& here = file_.model.layers[differs].name;
  const bool comes_later =
      std::any_of(model_.layers.begin() + differs, model_.layers.end(),
                  [&here](const LayerSpec& layer) { return layer.name == here; });
  if (layers() < wanted() && comes_later) {
    return Refuse(differs, absl::StrCat(counts, "'", name, "' is missing before '", here, "'"));
  }
  return Refuse(differs, absl::StrCat(counts, "layer ", differs, " of the profile is '", here,
                                      "', of the model '", name, "'"));
}

// Of one sample.
Bytes OutputBytes(const LayerSpec& layer) {
  Bytes bytes;
  for (const TensorSpec& output : layer.outputs) bytes += SizeOf(output);
  return bytes;
}

absl::Status ProfileChecker::CheckHandedOn(int layer, Bytes handed_on) const {
  const Bytes measured = file_.model.layers[layer].boundary;
  if (handed_on == Bytes() || measured == handed_on) return absl::OkStatus();
  // Twice or half of it was computed in other numbers. What nobody has measured may be anything.
  const bool in_other_numbers = measured == handed_on * 2 || measured * 2 == handed_on;
  if (!in_other_numbers && (!is_measured() || measured == Bytes())) return absl::OkStatus();
  return Refuse(layer, absl::StrCat("layer ", layer, " of the profile hands on ", measured.value,
                                    " bytes, of the job's model ", handed_on.value,
                                    in_other_numbers ? " in its train.precision" : ""));
}

// Of 4 bytes each, or 2; 0: not said.
absl::Status ProfileChecker::CheckParameters(int layer, int64_t owned) const {
  const Bytes measured = file_.model.layers[layer].parameters;
  const int64_t used = UsedElements(model_.layers[layer]);
  const bool fits = Bytes(2 * owned) <= measured && measured <= Bytes(4 * used);
  if (fits || !is_measured() || measured == Bytes(0)) return absl::OkStatus();
  return Refuse(layer,
                absl::StrCat("layer ", layer, " of the profile has ", measured.value,
                             " bytes of parameters, of the job's model ", used, " parameters"));
}

absl::Status ProfileChecker::CheckLayers(int64_t microbatch) const {
  const std::vector<int64_t> owned = OwnedElements(model_);
  for (int layer = 0; layer < layers(); ++layer) {
    const LayerProfile& measured = file_.model.layers[layer];
    const bool is_written = layer < static_cast<int>(file_.places.size());
    if (owned[layer] > 0 && is_written) {
      const ProfilePlace& has = file_.places[layer];
      const absl::string_view lacks = !has.has_optimizer  ? "'optimizer'"
                                      : !has.has_backward ? "'weight_backward'"
                                                          : "";
      if (!lacks.empty()) {
        return Refuse(layer, absl::StrCat("layer '", measured.name, "' has no ", lacks, ", and ",
                                          owned[layer], " parameters in the model"));
      }
    }
    SIPHON_RETURN_IF_ERROR(CheckHandedOn(layer, OutputBytes(model_.layers[layer]) * microbatch));
    SIPHON_RETURN_IF_ERROR(CheckParameters(layer, owned[layer]));
  }
  return absl::OkStatus();
}

absl::Status ProfileChecker::Check(int64_t microbatch) const {
  SIPHON_RETURN_IF_ERROR(CheckKind());
  if (file_.model.microbatch != microbatch) {
    return RefuseAt(file_.microbatch_place,
                    absl::StrCat("the profile has microbatches of ", file_.model.microbatch,
                                 ", the job of ", microbatch));
  }
  SIPHON_RETURN_IF_ERROR(CheckNames());
  return CheckLayers(microbatch);
}

}  // namespace

absl::Status CheckProfileFits(const ProfileFile& profile, const ModelSpec& model,
                              int64_t microbatch, absl::string_view path) {
  return ProfileChecker(profile, model, path).Check(microbatch);
}

}  // namespace siphon
