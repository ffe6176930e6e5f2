// data.kind tokens: Megatron-LM's indexed dataset, two files written by its preprocess_data.py.
//   .bin  the ids of all sequences, one after the other
//   .idx  "MMIDIDX\0\0", u64 version (1), u8 type of an id, u64 sequences, u64 documents + 1,
//         i32 length of each sequence in ids, i64 place of each in the .bin in bytes,
//         i64 first sequence of each document and the end; multimodal ones: u8 mode of each
//         sequence.
// All numbers are little-endian and packed. Sequences are read as one stream, document borders and
// all.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "launch/data/mapped_file.h"
#include "launch/data/sources.h"
#include "launch/data/token_windows.h"
#include "planner/keyed_hash.h"
#include "planner/status.h"

namespace siphon {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

constexpr absl::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kVersion = 1;
constexpr size_t kHeaderBytes = 9 + 8 + 1 + 8 + 8;

template <typename T>
T Load(absl::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <typename T>
void CopyIds(absl::string_view bytes, int64_t begin, absl::Span<int64_t> ids) {
  const char* from = bytes.data() + static_cast<size_t>(begin) * sizeof(T);
  for (size_t i = 0; i < ids.size(); ++i) {
    T id;
    std::memcpy(&id, from + i * sizeof(T), sizeof(T));
    ids[i] = static_cast<int64_t>(id);
  }
}

struct IdType {
  uint8_t code;
  int64_t bytes;
  void (*copy)(absl::string_view, int64_t, absl::Span<int64_t>);
};
// The codes of Megatron's DType; 6 and 7 are floating-point.
constexpr std::array<IdType, 6> kIdTypes = {{{1, 1, CopyIds<uint8_t>},
                                             {2, 1, CopyIds<int8_t>},
                                             {3, 2, CopyIds<int16_t>},
                                             {4, 4, CopyIds<int32_t>},
                                             {5, 8, CopyIds<int64_t>},
                                             {8, 2, CopyIds<uint16_t>}}};

struct TokenFiles {
  std::shared_ptr<const MappedFile> index;
  std::shared_ptr<const MappedFile> ids;
  IdType type;
  int64_t count = 0;  // ids in all
};

absl::Status IndexError(const MappedFile& index, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("data.path ", index.path(), ": ", problem));
}

absl::StatusOr<IdType> ReadIdType(const MappedFile& index) {
  const absl::string_view bytes = index.bytes();
  if (!absl::StartsWith(bytes, kMagic)) {
    return IndexError(index, "does not begin with MMIDIDX; it is no index of Megatron's");
  }
  if (bytes.size() < kHeaderBytes) {
    return IndexError(index, absl::StrCat("is cut off: ", bytes.size(),
                                          " bytes, the header alone has ", kHeaderBytes));
  }
  if (const auto version = Load<uint64_t>(bytes, 9); version != kVersion) {
    return IndexError(index, absl::StrCat("has version ", version, "; known: ", kVersion));
  }
  const auto code = Load<uint8_t>(bytes, 17);
  for (const IdType& type : kIdTypes) {
    if (type.code == code) return type;
  }
  return IndexError(index,
                    absl::StrCat("has ids of type ", int{code},
                                 "; known: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 8 uint16"));
}

// Sequences must lie one after the other, without gaps, and fill the .bin.
absl::Status CheckSequences(const MappedFile& index, const MappedFile& ids, uint64_t sequences,
                            int64_t id_bytes) {
  const size_t lengths = kHeaderBytes;
  const size_t places = lengths + sequences * 4;
  int64_t end =
      0;  // at most 2^31 x 8 bytes for each of fewer than 2^60 sequences that the file holds
  for (size_t sequence = 0; sequence < sequences; ++sequence) {
    const auto length = Load<int32_t>(index.bytes(), lengths + sequence * 4);
    const auto place = Load<int64_t>(index.bytes(), places + sequence * 8);
    if (length < 0) {
      return IndexError(index, absl::StrCat("sequence ", sequence, " has length ", length));
    }
    if (place != end) {
      return IndexError(index, absl::StrCat("sequence ", sequence, " begins at byte ", place,
                                            ", the one before it ends at ", end));
    }
    if (__builtin_add_overflow(end, length * id_bytes, &end)) {
      return IndexError(index, absl::StrCat("sequence ", sequence, " ends beyond 64 bits"));
    }
  }
  const auto size = static_cast<int64_t>(ids.bytes().size());
  if (end != size) {
    return IndexError(index, absl::StrCat("its ", sequences, " sequences have ", end, " bytes, ",
                                          ids.path(), " has ", size));
  }
  return absl::OkStatus();
}

absl::Status CheckDocuments(const MappedFile& index, size_t at, uint64_t borders,
                            uint64_t sequences) {
  int64_t last = 0;
  for (size_t border = 0; border < borders; ++border) {
    const auto sequence = Load<int64_t>(index.bytes(), at + border * 8);
    if (sequence < last || sequence > static_cast<int64_t>(sequences)) {
      return IndexError(index, absl::StrCat("document border ", border, " is at sequence ",
                                            sequence, "; must be from ", last, " to ", sequences));
    }
    last = sequence;
  }
  return absl::OkStatus();
}

absl::Status CheckIndex(const MappedFile& index, const MappedFile& ids, int64_t id_bytes) {
  const auto sequences = Load<uint64_t>(index.bytes(), 18);
  const auto borders = Load<uint64_t>(index.bytes(), 26);
  const uint64_t size = index.bytes().size();
  // Bounds that make the products below fit, before they are computed.
  if (sequences > size / 12 || borders > size / 8) {
    return IndexError(index, absl::StrCat("is cut off: ", size, " bytes for ", sequences,
                                          " sequences and ", borders, " document borders"));
  }
  const uint64_t documents_at = kHeaderBytes + sequences * 12;
  const uint64_t needed = documents_at + borders * 8;
  if (size != needed && size != needed + sequences) {
    return IndexError(index, absl::StrCat(size < needed ? "is cut off: " : "is too long: ", size,
                                          " bytes; ", sequences, " sequences and ", borders,
                                          " document borders take ", needed));
  }
  SIPHON_RETURN_IF_ERROR(CheckSequences(index, ids, sequences, id_bytes));
  return CheckDocuments(index, documents_at, borders, sequences);
}

absl::StatusOr<TokenFiles> OpenFiles(const std::string& path) {
  if (path.empty()) {
    return absl::InvalidArgumentError("data.path is empty; write the path of a .bin and .idx pair");
  }
  absl::string_view prefix = path;
  if (!absl::ConsumeSuffix(&prefix, ".bin")) absl::ConsumeSuffix(&prefix, ".idx");
  TokenFiles files;
  SIPHON_ASSIGN_OR_RETURN(files.index, MappedFile::Open(absl::StrCat(prefix, ".idx"), "data.path"));
  SIPHON_ASSIGN_OR_RETURN(files.type, ReadIdType(*files.index));
  SIPHON_ASSIGN_OR_RETURN(files.ids, MappedFile::Open(absl::StrCat(prefix, ".bin"), "data.path"));
  SIPHON_RETURN_IF_ERROR(CheckIndex(*files.index, *files.ids, files.type.bytes));
  files.count = static_cast<int64_t>(files.ids->bytes().size()) / files.type.bytes;
  return files;
}

// The largest id + 1. Errors: InvalidArgument for a negative id, or one at the end of 64 bits.
absl::StatusOr<int64_t> CountVocabulary(const TokenFiles& files) {
  std::array<int64_t, 4096> block;
  int64_t largest = 0;
  for (int64_t begin = 0; begin < files.count; begin += static_cast<int64_t>(block.size())) {
    const auto size = std::min<size_t>(block.size(), static_cast<size_t>(files.count - begin));
    files.type.copy(files.ids->bytes(), begin, absl::MakeSpan(block.data(), size));
    const auto [least, most] = std::minmax_element(block.begin(), block.begin() + size);
    if (*least < 0 || *most == INT64_MAX) {
      const int64_t id = *least < 0 ? *least : *most;
      const auto at = begin + (std::find(block.begin(), block.begin() + size, id) - block.begin());
      return absl::InvalidArgumentError(absl::StrCat("data.path ", files.ids->path(), ": token ",
                                                     at, " is ", id, "; ids count from 0"));
    }
    largest = std::max(largest, *most);
  }
  return largest + 1;
}

}  // namespace

absl::StatusOr<int64_t> TokensVocabulary(const DatasetOptions& options) {
  SIPHON_ASSIGN_OR_RETURN(const TokenFiles files, OpenFiles(options.path));
  return CountVocabulary(files);
}

absl::StatusOr<Dataset> OpenTokens(const DatasetOptions& options, const ModelSpec& model) {
  SIPHON_ASSIGN_OR_RETURN(const TokenFiles files, OpenFiles(options.path));
  TokenStream stream{absl::StrCat("data.path ", files.ids->path()), "tokens"};
  stream.size = files.count;
  SIPHON_ASSIGN_OR_RETURN(stream.vocabulary, CountVocabulary(files));
  stream.content_hash = KeyedHash(RandomPurpose::kDataOrder, {SampledHash(files.index->bytes()),
                                                              SampledHash(files.ids->bytes())});
  stream.file = files.ids;
  stream.copy = [ids = files.ids, copy = files.type.copy](int64_t begin, absl::Span<int64_t> out) {
    copy(ids->bytes(), begin, out);
  };
  return CutIntoWindows(stream, options, model);
}

}  // namespace siphon
