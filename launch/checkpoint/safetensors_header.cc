#include "launch/checkpoint/safetensors_header.h"

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/status.h"

namespace siphon {
namespace {

using Json = nlohmann::json;

constexpr absl::string_view kMetadataName = "__metadata__";
constexpr size_t kMostDimensions = 64;  // what PyTorch allows too

// Takes the parser's events and accepts exactly {name: {dtype, shape, data_offsets},
// "__metadata__": {key: text}}. Member names are those that nlohmann::json::sax_parse calls.
class HeaderReader {
 public:
  absl::StatusOr<SafetensorsHeader> Result(bool parsed) {
    if (!error_.empty()) return absl::InvalidArgumentError(error_);
    if (!parsed) return absl::InvalidArgumentError("the header is not valid JSON");
    return std::move(header_);
  }

  bool null() { return Unexpected("null"); }
  bool boolean(bool) { return Unexpected("true or false"); }
  bool number_float(double, const std::string& text) { return Unexpected(text); }
  bool number_integer(int64_t value) { return Unexpected(absl::StrCat(value)); }
  bool binary(Json::binary_t&) { return Unexpected("binary data"); }

  bool number_unsigned(uint64_t value) {
    if (!in_list_) return Unexpected(absl::StrCat(value));
    if (value > static_cast<uint64_t>(INT64_MAX)) {
      return Fail(absl::StrCat(KeyOf(place_), " holds ", value, ", which overflows 63 bits"));
    }
    std::vector<int64_t>& list = place_ == Place::kShape ? tensor_.spec.shape : offsets_;
    if (place_ == Place::kShape && list.size() == kMostDimensions) {
      return Fail(absl::StrCat("more than ", kMostDimensions, " dimensions"));
    }
    if (place_ == Place::kOffsets && list.size() == 2) {
      return Fail("data_offsets holds more than two numbers");
    }
    list.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(std::string& value) {
    if (place_ == Place::kMetadataValue) {
      header_.metadata[key_] = value;
      place_ = Place::kMetadata;
      return true;
    }
    if (place_ != Place::kDType) return Unexpected(absl::StrCat("\"", value, "\""));
    const auto dtype = ParseDType(value);
    if (!dtype.ok()) return Fail(dtype.status().message());
    tensor_.spec.dtype = *dtype;
    place_ = Place::kTensor;
    return true;
  }

  bool start_object(size_t) {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return true;
      case Place::kMetadataObject:
        place_ = Place::kMetadata;
        return true;
      case Place::kTensorObject:
        place_ = Place::kTensor;
        return true;
      default:
        return Unexpected("an object");
    }
  }

  bool key(std::string& key) {
    key_ = key;
    if (place_ == Place::kTop) return TopKey(key);
    if (!keys_.insert(key).second) return Fail(absl::StrCat("'", key, "' is there twice"));
    if (place_ == Place::kMetadata) {
      place_ = Place::kMetadataValue;
      return true;
    }
    for (const Place value : {Place::kDType, Place::kShape, Place::kOffsets}) {
      if (key != KeyOf(value)) continue;
      place_ = value;
      return true;
    }
    return Fail(
        absl::StrCat("unknown key '", key, "'; dtype, shape and data_offsets belong there"));
  }

  bool end_object() {
    if (place_ == Place::kTensor && !FinishTensor()) return false;
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool start_array(size_t) {
    const bool list = (place_ == Place::kShape || place_ == Place::kOffsets) && !in_list_;
    if (!list) return Unexpected("a list");
    in_list_ = true;
    return true;
  }

  bool end_array() {
    in_list_ = false;
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
    error_ = absl::StrCat("the header is not valid JSON at its byte ", position);
    return false;
  }

 private:
  enum class Place {
    kStart,
    kTop,
    kMetadataObject,  // the object has to start
    kMetadata,
    kMetadataValue,
    kTensorObject,  // likewise
    kTensor,
    kDType,
    kShape,
    kOffsets,
    kEnd,
  };

  static absl::string_view KeyOf(Place place) {
    switch (place) {
      case Place::kDType:
        return "dtype";
      case Place::kShape:
        return "shape";
      case Place::kOffsets:
        return "data_offsets";
      default:
        return "";
    }
  }

  bool TopKey(const std::string& name) {
    keys_.clear();
    tensor_ = StoredTensor{.name = name};
    offsets_.clear();
    if (!names_.insert(name).second) return Fail("is there twice");
    place_ = name == kMetadataName ? Place::kMetadataObject : Place::kTensorObject;
    return true;
  }

  bool FinishTensor() {
    for (const Place place : {Place::kDType, Place::kShape, Place::kOffsets}) {
      if (!keys_.contains(std::string(KeyOf(place)))) {
        return Fail(absl::StrCat("has no ", KeyOf(place)));
      }
    }
    if (offsets_.size() != 2) {
      return Fail(absl::StrCat("data_offsets holds ", offsets_.size(), " numbers instead of two"));
    }
    if (offsets_[1] < offsets_[0]) {
      return Fail(absl::StrCat("data_offsets end before they begin: [", offsets_[0], ", ",
                               offsets_[1], "]"));
    }
    tensor_.begin = offsets_[0];
    tensor_.size = offsets_[1] - offsets_[0];
    if (!CheckSize()) return false;
    header_.tensors.push_back(tensor_);
    return true;
  }

  bool CheckSize() {
    int64_t bytes = ElementBytes(tensor_.spec.dtype);
    for (const int64_t extent : tensor_.spec.shape) {
      if (__builtin_mul_overflow(bytes, extent, &bytes)) {
        return Fail(absl::StrCat("the shape [", absl::StrJoin(tensor_.spec.shape, ", "),
                                 "] overflows 63 bits"));
      }
    }
    if (bytes == tensor_.size) return true;
    return Fail(absl::StrCat(ToString(tensor_.spec), " needs ", bytes, " bytes, but data_offsets [",
                             tensor_.begin, ", ", tensor_.begin + tensor_.size, "] hold ",
                             tensor_.size));
  }

  bool Unexpected(absl::string_view what) {
    if (place_ == Place::kStart)
      return Fail(absl::StrCat("the header is ", what, ", not an object"));
    if (place_ == Place::kTensorObject || place_ == Place::kMetadataObject) {
      return Fail(absl::StrCat(what, " where an object belongs"));
    }
    const bool list = place_ == Place::kShape || place_ == Place::kOffsets;
    return Fail(
        absl::StrCat("'", key_, "' holds ", what,
                     list ? " where a list of whole numbers >= 0 belongs" : " where text belongs"));
  }

  bool Fail(absl::string_view what) {
    if (place_ == Place::kStart) {
      error_ = std::string(what);
    } else if (tensor_.name == kMetadataName) {
      error_ = absl::StrCat(kMetadataName, ": ", what);
    } else {
      error_ = absl::StrCat("tensor '", tensor_.name, "': ", what);
    }
    return false;
  }

  Place place_ = Place::kStart;
  bool in_list_ = false;
  std::string key_;
  std::set<std::string> names_;  // of the tensors so far
  std::set<std::string> keys_;   // of the object being read
  StoredTensor tensor_;
  std::vector<int64_t> offsets_;
  SafetensorsHeader header_;
  std::string error_;
};

// Tensors fill the data without gap or overlap. Sorts them by place.
absl::Status CheckPlaces(std::vector<StoredTensor>& tensors, int64_t data_bytes) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.size) < std::pair(b.begin, b.size);
  });
  int64_t end = 0;
  for (const StoredTensor& tensor : tensors) {
    const int64_t tensor_end = tensor.begin + tensor.size;
    if (tensor_end > data_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name, "': bytes [", tensor.begin, ", ", tensor_end,
                       ") pass the end of the data, which has ", data_bytes,
                       " bytes: the file is truncated or damaged"));
    }
    if (tensor.begin != end) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", tensor.name, "': begins at byte ", tensor.begin, " of the data, ",
          tensor.begin < end ? "inside the tensor before, which ends at byte "
                             : "leaving a gap after byte ",
          end));
    }
    end = tensor_end;
  }
  if (end == data_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(data_bytes - end, " extra bytes after the last tensor, which ends at byte ", end,
                   " of the data"));
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json,
                                                         int64_t data_bytes) {
  HeaderReader reader;
  const bool parsed = Json::sax_parse(json.begin(), json.end(), &reader);
  SIPHON_ASSIGN_OR_RETURN(SafetensorsHeader header, reader.Result(parsed));
  SIPHON_RETURN_IF_ERROR(CheckPlaces(header.tensors, data_bytes));
  return header;
}

absl::StatusOr<std::string> SafetensorsHeaderText(const SafetensorsHeader& header) {
  Json json = Json::object();
  if (!header.metadata.empty()) json[std::string(kMetadataName)] = header.metadata;
  for (const StoredTensor& tensor : header.tensors) {
    json[tensor.name] = {{"dtype", std::string(DTypeName(tensor.spec.dtype))},
                         {"shape", tensor.spec.shape},
                         {"data_offsets", {tensor.begin, tensor.begin + tensor.size}}};
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("a name is not UTF-8: ", error.what()));
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace siphon
