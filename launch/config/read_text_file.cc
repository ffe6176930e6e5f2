#include "launch/config/read_text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace siphon {

absl::StatusOr<std::string> ReadTextFile(const std::string& path, absl::string_view what,
                                         Bytes longest) {
  const auto failed = [&](int error) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", what, " '", path, "': ", std::strerror(error)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (file == nullptr) return failed(errno);
  std::string text;
  char piece[1 << 16];
  while (const size_t got = std::fread(piece, 1, sizeof(piece), file.get())) {
    text.append(piece, got);
    if (static_cast<int64_t>(text.size()) > longest.value) {
      return absl::InvalidArgumentError(absl::StrCat("cannot read ", what, " '", path,
                                                     "': it has more than ", FormatBytes(longest)));
    }
  }
  if (std::ferror(file.get()) != 0) return failed(errno);  // of a directory, for one
  return text;
}

}  // namespace siphon
