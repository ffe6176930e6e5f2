#include "swap/device/load_cuda_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string Refusal(const std::string& path) {
  const absl::StatusOr<const CudaModule*> module = LoadCudaModule(path);
  EXPECT_EQ(module.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(module.status().message());
}

TEST(LoadCudaModule, SaysInALineWhyThereIsNoneAndWhatIsLeft) {
  EXPECT_EQ(Refusal(""),
            "no CUDA: this build has no CUDA module, there was no CUDA toolkit when it was made; "
            "workers compute on the CPU here (pipeline.backend: cpu)");
  const std::string missing = Refusal("/nowhere/siphon_cuda.so");
  EXPECT_THAT(missing, HasSubstr("no CUDA: /nowhere/siphon_cuda.so: cannot open"));
  EXPECT_THAT(missing, HasSubstr("(pipeline.backend: cpu)"));
  EXPECT_THAT(missing, testing::Not(HasSubstr("\n")));
}

// The C library is a shared object that is no module of ours.
TEST(LoadCudaModule, RefusesWhatIsNoModule) {
  EXPECT_THAT(Refusal("libc.so.6"), HasSubstr("no CUDA: libc.so.6 is of another version"));
}

class FindCudaModuleIn : public testing::Test {
 protected:
  FindCudaModuleIn() {
    std::string pattern = (fs::temp_directory_path() / "siphon-find-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~FindCudaModuleIn() override { fs::remove_all(root_); }
  std::string Touch(const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "";
    return fs::canonical(root_ / path).string();
  }
  fs::path root_;
};

TEST_F(FindCudaModuleIn, KnowsBuildFoldersAndPrefixes) {
  const std::string built = Touch("build/siphon");
  EXPECT_EQ(FindCudaModule(built), "");
  const std::string module = Touch("build/swap/siphon_cuda.so");
  EXPECT_EQ(FindCudaModule(built), module);
  const std::string installed = Touch("usr/bin/siphon");
  EXPECT_EQ(FindCudaModule(installed), "");
  const std::string library = Touch("usr/lib/x86_64-linux-gnu/siphon/siphon_cuda.so");
  EXPECT_EQ(FindCudaModule(installed), library);
  EXPECT_EQ(FindCudaModule((root_ / "gone").string()), "");
}

}  // namespace
}  // namespace siphon
