// Reads every file of a fuzz target's corpus once.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

#define SIPHON_CORPUS_TEST(target) TEST(FuzzCorpus, target)
#define SIPHON_CORPUS_TEST_OF(target) SIPHON_CORPUS_TEST(target)

SIPHON_CORPUS_TEST_OF(SIPHON_FUZZ_TARGET) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SIPHON_CORPUS)) {
    SCOPED_TRACE(entry.path().filename().string());
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    const std::string bytes = text.str();
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()),
              0);
    ++files;
  }
  EXPECT_GT(files, 0) << "no corpus in " << SIPHON_CORPUS;
}

}  // namespace
