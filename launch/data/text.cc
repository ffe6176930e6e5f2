// data.kind text: any file, a byte an id.

#include <memory>

#include "absl/strings/str_cat.h"
#include "launch/data/mapped_file.h"
#include "launch/data/sources.h"
#include "launch/data/token_windows.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int64_t kByteValues = 256;

}  // namespace

absl::StatusOr<int64_t> TextVocabulary(const DatasetOptions&) { return kByteValues; }

absl::StatusOr<Dataset> OpenText(const DatasetOptions& options, const ModelSpec& model) {
  SIPHON_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                          MappedFile::Open(options.path, "data.path"));
  TokenStream stream{absl::StrCat("data.path ", options.path), "bytes"};
  stream.size = static_cast<int64_t>(file->bytes().size());
  stream.vocabulary = kByteValues;
  stream.content_hash = SampledHash(file->bytes());
  stream.file = file;
  stream.copy = [file](int64_t begin, absl::Span<int64_t> ids) {
    const absl::string_view bytes = file->bytes().substr(static_cast<size_t>(begin), ids.size());
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<unsigned char>(bytes[i]);
  };
  return CutIntoWindows(stream, options, model);
}

}  // namespace siphon
