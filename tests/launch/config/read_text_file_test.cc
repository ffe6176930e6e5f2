#include "launch/config/read_text_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

TEST(ReadTextFile, GivesAllBytesOrSaysWhatIsWrong) {
  const std::string path = testing::TempDir() + "/siphon-read-text-file-test";
  const std::string text = std::string("a\0b\r\n", 5) + std::string(200'000, 'x');
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(*ReadTextFile(path, "plan"), text);
  EXPECT_EQ(*ReadTextFile(path, "plan", Bytes(200'005)), text);
  EXPECT_EQ(ReadTextFile(path, "plan", Bytes(200'004)).status(),
            absl::InvalidArgumentError(
                absl::StrCat("cannot read plan '", path, "': it has more than 195 KiB")));
  std::filesystem::remove(path);
  EXPECT_EQ(ReadTextFile(path, "plan").status(),
            absl::NotFoundError(
                absl::StrCat("cannot read plan '", path, "': No such file or directory")));
  EXPECT_EQ(ReadTextFile("/", "plan").status(),
            absl::NotFoundError("cannot read plan '/': Is a directory"));
}

}  // namespace
}  // namespace siphon
