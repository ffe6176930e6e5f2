// Looks at the page of siphon plan --report with a real browser.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "launch/process/exit_codes.h"
#include "tests/launch/commands/run_command.h"
#include "tests/launch/output/browser.h"

namespace siphon {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// A server of eight devices: more links than a phone has room for, seven lenders.
constexpr char kJob[] = R"(
model: {kind: gpt, layers: 25, hidden: 4096, heads: 32, vocabulary: 50257, tie_embeddings: false}
data: {kind: tokens, path: /nowhere, sequence_length: 1024}
train: {global_batch: 16, microbatch: 2, precision: fp16}
pipeline: {stages: 8, schedule: dapple, backend: cuda}
topology: {name: dgx1_v100}
memory: {strategy: mpress, capacity: 24GiB}
)";

class PlanInBrowser : public BrowserTest {
 protected:
  static std::string Page() {
    const std::string directory = testing::TempDir() + "siphon-plan-in-browser";
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/job.yaml") << kJob;
    const CommandEnd end = RunRegisteredCommand(
        "plan", {directory + "/job.yaml", "--report", directory + "/plan.html"});
    EXPECT_EQ(end.code, kExitDone) << end.err;
    std::ifstream stream(directory + "/plan.html");
    std::string page(std::istreambuf_iterator<char>(stream), {});
    std::filesystem::remove_all(directory);
    return page;
  }
};

TEST_F(PlanInBrowser, FitsAPhoneInLightAndDarkMode) {
  const std::string page = Page();
  for (const char* scheme : {"0", "1"}) {
    const std::string seen = Look(page, scheme);
    EXPECT_THAT(seen, HasSubstr("wide as the screen: true\n"));
    EXPECT_THAT(seen, HasSubstr("told: "));
    EXPECT_THAT(seen, EndsWith("console: "));
  }
}

}  // namespace
}  // namespace siphon
