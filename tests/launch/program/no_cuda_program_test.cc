// The program on machines without CUDA: it neither links nor loads anything of it, unless a job
// asks for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::MatchesRegex;
using testing::Not;

std::string FileBytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
T At(const std::string& bytes, uint64_t offset) {
  T value;
  EXPECT_LE(offset + sizeof(value), bytes.size());
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// What an ELF file of 64 bits itself asks for (DT_NEEDED), as the loader reads it.
std::vector<std::string> LibrariesNeeded(const std::string& path) {
  const std::string bytes = FileBytes(path);
  const auto header = At<Elf64_Ehdr>(bytes, 0);
  std::vector<Elf64_Phdr> segments;
  for (int segment = 0; segment < header.e_phnum; ++segment) {
    segments.push_back(At<Elf64_Phdr>(
        bytes, header.e_phoff + static_cast<uint64_t>(segment) * header.e_phentsize));
  }
  uint64_t names = 0;  // address of the strings
  std::vector<uint64_t> needed;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at < segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = At<Elf64_Dyn>(bytes, segment.p_offset + at);
      if (entry.d_tag == DT_NEEDED) needed.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) names = entry.d_un.d_ptr;
    }
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || names < segment.p_vaddr) continue;
    if (names >= segment.p_vaddr + segment.p_filesz) continue;
    names = names - segment.p_vaddr + segment.p_offset;  // in the file
    break;
  }
  std::vector<std::string> libraries;
  for (const uint64_t name : needed) libraries.emplace_back(bytes.c_str() + names + name);
  return libraries;
}

class NoCuda : public TinyJobTest {
 protected:
  // Whether a process of `siphon train` with these arguments loads the CUDA module.
  bool LoadsTheModule(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"train", job()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    RunOptions options;
    options.environment = {"LD_DEBUG=files", absl::StrCat("LD_DEBUG_OUTPUT=", PathOf("loaded"))};
    Siphon(all, options);
    int files = 0;
    bool loads = false;
    for (const fs::directory_entry& entry : fs::directory_iterator(root())) {
      if (!absl::StartsWith(entry.path().filename().string(), "loaded.")) continue;
      ++files;
      const std::string text = FileBytes(entry.path());
      loads = loads || absl::StrContains(text, "siphon_cuda.so");
      fs::remove(entry.path());
    }
    EXPECT_GT(files, 0) << "the loader wrote nothing";
    return loads;
  }
};

TEST_F(NoCuda, IsLinkedByTheProgram) {
  const std::vector<std::string> libraries = LibrariesNeeded(SIPHON_PROGRAM);
  EXPECT_THAT(libraries, Contains("libtorch_cpu.so"));
  EXPECT_THAT(libraries, Not(Contains(MatchesRegex("lib(cuda|nccl|nv|torch_cuda|c10_cuda).*"))));
  EXPECT_THAT(libraries, Not(Contains(testing::HasSubstr("siphon"))));
}

TEST_F(NoCuda, IsLoadedForAJobOnTheCpu) {
  EXPECT_FALSE(LoadsTheModule({"--set", "train.steps=1"}));
  const bool is_built = fs::exists(fs::path(SIPHON_PROGRAM).parent_path() / "swap/siphon_cuda.so");
  EXPECT_EQ(LoadsTheModule({"--set", "pipeline.backend=cuda"}), is_built);
}

}  // namespace
}  // namespace siphon
