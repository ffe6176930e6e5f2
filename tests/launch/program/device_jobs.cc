#include "tests/launch/program/device_jobs.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launch/config/load_job_config.h"
#include "tests/launch/run/device_job.h"

namespace siphon {
namespace {

constexpr int64_t kDeviceMemory = int64_t{2} << 30;
constexpr int64_t kPercent = 85;  // it needs, everything kept
constexpr char kAmple[] = ",400MiB,400MiB,400MiB]";

}  // namespace

ProgramTest::Program DeviceProgram(const std::string& directory, int devices) {
  std::filesystem::create_directories(directory);
  return {.path = SIPHON_DEVICE_PROGRAM,
          .environment = {"LD_PRELOAD=" SIPHON_FAKES, "SIPHON_FAKE_CUDA_DIR=" + directory,
                          absl::StrCat("SIPHON_FAKE_CUDA_DEVICES=", devices),
                          absl::StrCat("SIPHON_FAKE_CUDA_MEMORY=", kDeviceMemory)}};
}

std::string OnDevices(const std::string& tiny_job_text) {
  return absl::StrReplaceAll(tiny_job_text,
                             {{"dropout: 0.1\n", "dropout: 0\n  flash_attention: false\n"},
                              {"stages: 4\n", "stages: 4\n  backend: cuda\n"},
                              {"checkpoint:\n", "topology:\n  name: v100x4_nv2\ncheckpoint:\n"}});
}

std::string TightCapacity(const std::string& job_file) {
  ConfigLimits limits;
  limits.known.why_no_cuda = [] { return std::string(); };
  const auto job = LoadJobConfig(job_file, {}, limits);
  EXPECT_TRUE(job.ok()) << job.status();
  return absl::StrCat("[", Needs(*job, kPercent)[0].value, "B", kAmple);
}

}  // namespace siphon
