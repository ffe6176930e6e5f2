#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "launch/checkpoint/checksum.h"
#include "launch/checkpoint/safetensors.h"
#include "launch/checkpoint/safetensors_header.h"
#include "planner/status.h"

namespace siphon {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

absl::Status CheckTensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::set<absl::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    const std::string place = absl::StrCat(path, ": tensor '", tensor.name, "'");
    if (tensor.name == "__metadata__") {
      return absl::InvalidArgumentError(absl::StrCat(place, ": the name belongs to the format"));
    }
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": is there twice"));
    }
    const Bytes needed = SizeOf(tensor.spec);
    const bool there = tensor.bring == nullptr;
    if (there && needed != Bytes(static_cast<int64_t>(tensor.bytes.size()))) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": ", ToString(tensor.spec), " needs ",
                                                     needed.value, " bytes, but ",
                                                     tensor.bytes.size(), " are given"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WrittenFile> WriteSafetensors(const std::string& path,
                                             const std::vector<NamedTensor>& tensors,
                                             const std::map<std::string, std::string>& metadata,
                                             const FileOperations& files) {
  SIPHON_RETURN_IF_ERROR(CheckTensors(path, tensors));
  std::vector<const NamedTensor*> sorted;
  for (const NamedTensor& tensor : tensors) sorted.push_back(&tensor);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return ElementBytes(a->spec.dtype) > ElementBytes(b->spec.dtype);
  });

  SafetensorsHeader header{.metadata = metadata};
  std::vector<FilePiece> pieces = {absl::Span<const std::byte>()};  // the header's place
  int64_t end = 0;
  for (const NamedTensor* tensor : sorted) {
    const int64_t size = SizeOf(tensor->spec).value;
    header.tensors.push_back(
        {.name = tensor->name, .spec = tensor->spec, .begin = end, .size = size});
    pieces.push_back(tensor->bring == nullptr
                         ? FilePiece(tensor->bytes)
                         : FilePiece(static_cast<size_t>(size), tensor->bring));
    end += size;
  }
  const absl::StatusOr<std::string> json = SafetensorsHeaderText(header);
  if (!json.ok()) return Annotate(json.status(), path);

  const auto length = static_cast<uint64_t>(json->size());
  std::string start(sizeof(length), '\0');
  std::memcpy(start.data(), &length, sizeof(length));
  start += *json;
  pieces[0] = absl::MakeConstSpan(reinterpret_cast<const std::byte*>(start.data()), start.size());
  SIPHON_RETURN_IF_ERROR(WriteFile(path, pieces, files));
  return WrittenFile{.size = static_cast<int64_t>(start.size()) + end,
                     .header_checksum = Checksum(start)};
}

}  // namespace siphon
