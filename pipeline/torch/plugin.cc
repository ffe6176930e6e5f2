#include "pipeline/torch/plugin.h"

#include <dlfcn.h>
#include <elf.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/status.h"

namespace siphon {
namespace {

template <typename Function>
Function* FindFunction(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// Of a copy that was cut off, pages behind its end kill whoever reads them. The table of sections
// stands last.
bool IsCutOff(const std::string& path) {
  std::error_code unknown;
  const uintmax_t size = std::filesystem::file_size(path, unknown);
  Elf64_Ehdr header = {};
  std::ifstream file(path, std::ios::binary);
  const bool read = static_cast<bool>(file.read(reinterpret_cast<char*>(&header), sizeof(header)));
  if (unknown || !read ||
      std::string_view(reinterpret_cast<char*>(header.e_ident), SELFMAG) != ELFMAG) {
    return false;  // dlopen says what it is
  }
  return size < header.e_shoff ||
         size - header.e_shoff < uintmax_t{header.e_shnum} * header.e_shentsize;
}

absl::StatusOr<Model> BuildFrom(const std::string& path, const ModelOptions& options) {
  std::error_code unused;
  if (!std::filesystem::is_regular_file(path, unused)) {
    return absl::InvalidArgumentError("there is no such file");
  }
  if (IsCutOff(path)) {
    return absl::InvalidArgumentError("it is shorter than it says: a copy of it was cut off");
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("it cannot be loaded: ", dlerror()));
  }
  const auto interface = FindFunction<const char*()>(library, "SiphonPluginInterface");
  const auto build =
      FindFunction<void(const ModelOptions*, absl::StatusOr<Model>*)>(library, "SiphonBuildModel");
  if (interface == nullptr || build == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it does not define ", interface == nullptr ? "SiphonPluginInterface" : "SiphonBuildModel",
        ": put SIPHON_PLUGIN(your function) into one of its sources"));
  }
  if (absl::string_view(interface()) != SIPHON_PLUGIN_INTERFACE) {
    return absl::InvalidArgumentError(
        absl::StrCat("it was built for '", interface(), "' and this program has '",
                     SIPHON_PLUGIN_INTERFACE, "': build it again with this Siphon"));
  }
  absl::StatusOr<Model> model = absl::UnknownError("SiphonBuildModel returned no model");
  build(&options, &model);
  SIPHON_RETURN_IF_ERROR(model.status());
  SIPHON_RETURN_IF_ERROR(ValidateModel(*model));
  return model;
}

}  // namespace

absl::StatusOr<Model> LoadPluginModel(const std::string& library, const ModelOptions& options) {
  // Without a slash dlopen would look through the system's folders, and not into this one.
  const bool has_folder = library.find('/') != std::string::npos;
  absl::StatusOr<Model> model = BuildFrom(has_folder ? library : "./" + library, options);
  if (model.ok()) return model;
  return Annotate(model.status(), absl::StrCat("plugin ", library));
}

}  // namespace siphon
