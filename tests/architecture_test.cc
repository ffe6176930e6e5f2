// Holds the source tree to its design: who includes and links whom, through which files third-party
// libraries enter, which names types have, and how long a file may be. The rules are in
// architecture_rules.cc, the table of folders and libraries in architecture_table.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "tests/architecture_rules.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

// path -> text of every file below the folders of the design whose name ends in one of `endings`.
std::map<std::string, std::string> FilesEndingIn(const std::vector<std::string>& endings) {
  std::map<std::string, std::string> files;
  const fs::path root(SIPHON_SOURCE_DIR);
  for (const char* folder :
       {"planner", "partitioner", "swap", "pipeline", "launch", "configs", "tests"}) {
    if (!fs::exists(root / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string path = fs::relative(entry.path(), root).generic_string();
      const auto matches = [&](const std::string& ending) { return absl::EndsWith(path, ending); };
      if (!entry.is_regular_file() || std::none_of(endings.begin(), endings.end(), matches)) {
        continue;
      }
      std::ifstream stream(entry.path());
      files[path] = std::string(std::istreambuf_iterator<char>(stream), {});
    }
  }
  return files;
}

std::string Lines(const std::vector<std::string>& problems) {
  return absl::StrJoin(problems, "\n");
}

TEST(Architecture, EveryFileKeepsToItsFolderDoorsAndLength) {
  const std::map<std::string, std::string> files =
      FilesEndingIn({".h", ".cc", ".cu", ".cuh", ".def"});
  EXPECT_GT(files.size(), 60u) << "the sources are not at " << SIPHON_SOURCE_DIR;
  for (const auto& [path, text] : files) {
    const std::vector<std::string> problems = CheckSourceFile(path, text);
    EXPECT_TRUE(problems.empty()) << Lines(problems);
  }
}

// Figures from devices are a record, which grows.
TEST(Architecture, EveryReadmeOfAFolderIsShort) {
  const std::map<std::string, std::string> files = FilesEndingIn({"README.md"});
  EXPECT_GT(files.size(), 20u);
  for (const auto& [path, text] : files) {
    if (path == "tests/gpu/README.md") continue;
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40) << path;
  }
}

TEST(Architecture, EveryTypeHasANameOfItsOwn) {
  std::map<std::string, std::string> places;
  for (const auto& [path, text] : FilesEndingIn({".h", ".cc", ".cu", ".cuh"})) {
    for (const auto& [type, place] : TypesOf(path, text)) {
      const auto [first, is_new] = places.emplace(type, place);
      EXPECT_TRUE(is_new) << place << ": " << type << " is also defined at " << first->second;
    }
  }
  EXPECT_GT(places.size(), 100u);
}

TEST(Architecture, EveryLinkEdgeIsInTheTable) {
  const std::map<std::string, std::string> files = FilesEndingIn({"CMakeLists.txt"});
  std::map<std::string, std::string> libraries;
  for (const auto& [path, text] : files) libraries.merge(LibrariesOf(path, text));
  EXPECT_TRUE(libraries.contains("siphon_planner"));
  EXPECT_TRUE(libraries.contains("siphon_schedules"));
  for (const auto& [path, text] : files) {
    const std::vector<std::string> problems = CheckLinks(path, text, libraries);
    EXPECT_TRUE(problems.empty()) << Lines(problems);
  }
}

TEST(ArchitectureRules, NameAWrongEdgeBetweenFolders) {
  EXPECT_THAT(CheckSourceFile("planner/a.cc",
                              "#include \"planner/b.h\"\n#include <vector>\n"
                              "#include \"swap/memory_ledger.h\"\n"),
              ElementsAre("planner/a.cc:3: planner/ may not include swap/ "
                          "(\"swap/memory_ledger.h\")"));
  EXPECT_THAT(CheckSourceFile("partitioner/a.cc", "#include \"pipeline/schedules/x.h\"\n"),
              ElementsAre("partitioner/a.cc:1: partitioner/ may not include pipeline/schedules/ "
                          "(\"pipeline/schedules/x.h\")"));
  EXPECT_THAT(CheckSourceFile("pipeline/schedules/a.cc", "#include \"swap/memory_ledger.h\"\n"),
              ElementsAre("pipeline/schedules/a.cc:1: pipeline/schedules/ may not include swap/ "
                          "(\"swap/memory_ledger.h\")"));
  EXPECT_THAT(CheckSourceFile("pipeline/a.cc", "  #  include \"pipeline/torch/aten.h\" // why\n"),
              ElementsAre("pipeline/a.cc:1: pipeline/ may not include pipeline/torch/ "
                          "(\"pipeline/torch/aten.h\")"));
  EXPECT_THAT(CheckSourceFile("pipeline/torch/a.cc", "#include \"launch/run/job.h\"\n"),
              ElementsAre("pipeline/torch/a.cc:1: pipeline/torch/ may not include launch/run/ "
                          "(\"launch/run/job.h\")"));
  EXPECT_THAT(CheckSourceFile("planner/drafts/a.cc", "#include \"planner/search/x.h\"\n"),
              ElementsAre("planner/drafts/a.cc:1: planner/drafts/ may not include planner/search/ "
                          "(\"planner/search/x.h\")"));
  EXPECT_THAT(
      CheckSourceFile("planner/simulator/a.cc", "#include \"planner/drafts/x.h\"\n"),
      ElementsAre("planner/simulator/a.cc:1: planner/simulator/ may not include planner/drafts/ "
                  "(\"planner/drafts/x.h\")"));
  EXPECT_THAT(CheckSourceFile("launch/a.cc", "#include \"tests/support/reference.h\"\n"),
              ElementsAre("launch/a.cc:1: launch/ may not include tests/ "
                          "(\"tests/support/reference.h\")"));
}

TEST(ArchitectureRules, AllowTheEdgesOfTheTable) {
  EXPECT_THAT(CheckSourceFile("pipeline/torch/a.cc",
                              "#include \"pipeline/stage_compute.h\"\n#include \"swap/x.h\"\n"
                              "#include \"planner/x.h\"\n#include <ATen/ATen.h>\n"
                              "#include \"absl/status/status.h\"\n#include <unistd.h>\n"),
              IsEmpty());
  EXPECT_THAT(CheckSourceFile("launch/run/a.cc",
                              "#include \"pipeline/torch/torch_stage.h\"\n#include <thread>\n"
                              "#include \"partitioner/partition_model.h\"\n#include <CLI/CLI.hpp>\n"
                              "#include \"pipeline/schedules/build_schedule.h\"\n"),
              IsEmpty());
  EXPECT_THAT(CheckSourceFile("planner/search/a.cc",
                              "#include \"planner/drafts/x.h\"\n#include \"planner/topology.h\"\n"),
              IsEmpty());
  EXPECT_THAT(CheckSourceFile("tests/a_test.cc", "#include <ATen/ATen.h>\n#include <mpi.h>\n"),
              IsEmpty());
}

TEST(ArchitectureRules, NameALibraryThatEntersByAnotherDoor) {
  EXPECT_THAT(CheckSourceFile("pipeline/stage_worker.cc", "#include <ATen/ATen.h>\n"),
              ElementsAre("pipeline/stage_worker.cc:1: <ATen/ATen.h> enters through "
                          "pipeline/torch/* only"));
  EXPECT_THAT(CheckSourceFile("launch/run/a.cc", "#include \"torch/torch.h\"\n"),
              ElementsAre("launch/run/a.cc:1: \"torch/torch.h\" enters through pipeline/torch/* "
                          "only"));
  EXPECT_THAT(CheckSourceFile("launch/process/a.cc", "#include <mpi.h>\n"),
              ElementsAre("launch/process/a.cc:1: <mpi.h> enters through launch/mpi_* only"));
  EXPECT_THAT(CheckSourceFile("swap/a.cc", "#include <spdlog/spdlog.h>\n"),
              ElementsAre("swap/a.cc:1: <spdlog/spdlog.h> enters through launch/* only"));
  EXPECT_THAT(CheckSourceFile("planner/a.cc", "#include <yaml-cpp/yaml.h>\n"),
              ElementsAre("planner/a.cc:1: <yaml-cpp/yaml.h> enters through launch/* only"));
  EXPECT_THAT(
      CheckSourceFile("pipeline/torch/stage.cc", "#include <cuda_runtime.h>\n"),
      ElementsAre("pipeline/torch/stage.cc:1: <cuda_runtime.h> enters through "
                  "swap/device/cuda_*, pipeline/torch/device/cuda_*, pipeline/transport/nccl_* "
                  "only"));
  EXPECT_THAT(CheckSourceFile("pipeline/torch/stage.cc", "#include <c10/cuda/CUDAStream.h>\n"),
              ElementsAre("pipeline/torch/stage.cc:1: <c10/cuda/CUDAStream.h> enters through "
                          "pipeline/torch/device/cuda_* only"));
  EXPECT_THAT(CheckSourceFile("swap/device/cuda_backend.cc", "#include <cuda_runtime.h>\n"),
              IsEmpty());
}

TEST(ArchitectureRules, NameALibraryWithoutADoor) {
  EXPECT_THAT(CheckSourceFile("launch/a.cc", "#include <boost/asio.hpp>\n#include <sqlite3.h>\n"),
              ElementsAre("launch/a.cc:1: <boost/asio.hpp> has no door: give its library one in "
                          "tests/architecture_table.cc",
                          "launch/a.cc:2: <sqlite3.h> has no door: give its library one in "
                          "tests/architecture_table.cc"));
}

TEST(ArchitectureRules, KeepThePureFoldersPure) {
  const std::string why =
      ", which is pure: no input or output, clock, threads or global random numbers";
  EXPECT_THAT(CheckSourceFile("planner/a.cc", "#include <chrono>\n"),
              ElementsAre("planner/a.cc:1: <chrono> in planner/" + why));
  EXPECT_THAT(CheckSourceFile("pipeline/schedules/a.cc", "#include <sys/mman.h>\n"),
              ElementsAre("pipeline/schedules/a.cc:1: <sys/mman.h> in pipeline/schedules/" + why));
  EXPECT_THAT(CheckSourceFile("planner/status.cc", "#include <cstdio>\n"), IsEmpty());
  EXPECT_THAT(CheckSourceFile("swap/a.cc", "#include <chrono>\n"), IsEmpty());
}

TEST(ArchitectureRules, NameIncludesThatAreNotRooted) {
  EXPECT_THAT(CheckSourceFile("planner/a.cc", "#include \"b.h\"\n"),
              ElementsAre("planner/a.cc:1: \"b.h\" is not rooted at the project "
                          "(\"planner/action.h\")"));
  EXPECT_THAT(CheckSourceFile("tools/a.cc", ""),
              ElementsAre("tools/a.cc:1: no folder of the design holds this file"));
}

TEST(ArchitectureRules, NameAFileThatIsTooLong) {
  std::string text;
  for (int line = 0; line < 600; ++line) text += "// one idea\n";
  EXPECT_THAT(CheckSourceFile("launch/a.cu", text), IsEmpty());
  EXPECT_THAT(CheckSourceFile("launch/a.cu", text + "// another\n"),
              ElementsAre("launch/a.cu:601: 601 lines; a file is one idea and has at most 600"));
  EXPECT_THAT(
      CheckSourceFile("tests/a_test.cc", text + "// another\n"),
      ElementsAre("tests/a_test.cc:601: 601 lines; a file is one idea and has at most 600"));
}

TEST(ArchitectureRules, NameAWrongLinkEdge) {
  const std::map<std::string, std::string> libraries = {{"siphon_planner", "planner/"},
                                                        {"siphon_swap", "swap/"},
                                                        {"siphon_schedules", "pipeline/schedules/"},
                                                        {"siphon_torch", "pipeline/torch/"}};
  const std::string text =
      "# siphon_library(siphon_old LINKS siphon_torch)\n"
      "siphon_library(siphon_schedules SOURCES siphon_swap.cc\n"
      "  LINKS siphon_planner absl::status siphon_swap\n"
      "  PRIVATE_LINKS MPI::MPI_C)\n"
      "target_link_libraries(siphon_schedules PRIVATE siphon_torch mystery)\n";
  EXPECT_THAT(
      CheckLinks("pipeline/schedules/CMakeLists.txt", text, libraries),
      ElementsAre(
          "pipeline/schedules/CMakeLists.txt:2: pipeline/schedules/ may not link siphon_swap of "
          "swap/",
          "pipeline/schedules/CMakeLists.txt:2: links MPI::MPI_C, which enters through launch/* "
          "only",
          "pipeline/schedules/CMakeLists.txt:5: pipeline/schedules/ may not link siphon_torch of "
          "pipeline/torch/",
          "pipeline/schedules/CMakeLists.txt:5: links mystery, which is neither a library of ours "
          "nor has a door in tests/architecture_table.cc"));
  EXPECT_THAT(CheckLinks("launch/CMakeLists.txt",
                         "siphon_library(siphon_run SOURCES a.cc LINKS siphon_torch siphon_swap)",
                         libraries),
              IsEmpty());
}

TEST(ArchitectureRules, FindTheTypesOfAFile) {
  const std::string text =
      "namespace siphon {\n"
      "namespace {\nstruct Hidden {\n};\n}  // namespace\n"
      "class Later;\n"
      "struct alignas(64) Board::Slot {\n  struct Inner {\n  };\n};\n"
      "namespace mlp {\nenum class Kind { kA, kB };\n}  // namespace mlp\n"
      "template <typename T>\nclass Ring : public Base {\n};\n"
      "}  // namespace siphon\n";
  EXPECT_THAT(TypesOf("a.h", text), UnorderedElementsAre(Pair("siphon::Board::Slot", "a.h:7"),
                                                         Pair("siphon::mlp::Kind", "a.h:12"),
                                                         Pair("siphon::Ring", "a.h:15")));
}

TEST(ArchitectureRules, FindTheLibrariesOfAFolder) {
  EXPECT_EQ(LibrariesOf("pipeline/torch/CMakeLists.txt",
                        "siphon_library(siphon_torch\n  SOURCES a.cc)\nadd_library(other b.cc)"),
            (std::map<std::string, std::string>{{"siphon_torch", "pipeline/torch/"},
                                                {"other", "pipeline/torch/"}}));
}

}  // namespace
}  // namespace siphon
