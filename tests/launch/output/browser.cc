#include "tests/launch/output/browser.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace siphon {
namespace {

// Holds the page in a frame as wide as a phone, looks at it, and writes down what it saw. A browser
// without a window does not make windows that narrow.
constexpr absl::string_view kObserver = R"(<!doctype html><body><iframe id="phone" width="360"
height="640" style="border:0" srcdoc="PAGE"></iframe><pre id="seen"></pre><script>
var phone=document.getElementById("phone");
phone.addEventListener("load",function(){
var page=phone.contentDocument,root=page.documentElement;
var rect=page.querySelector("rect.B");
rect.dispatchEvent(new phone.contentWindow.MouseEvent("click",{bubbles:true}));
document.getElementById("seen").textContent=[
"wide as the screen: "+(root.scrollWidth<=360&&page.body.scrollWidth<=360),
"picture scrolls: "+(page.querySelector(".wide").scrollWidth>360),
"background: "+phone.contentWindow.getComputedStyle(page.body).backgroundColor,
"letters: "+phone.contentWindow.getComputedStyle(page.querySelector("svg text")).fill,
"told: "+page.getElementById("told").textContent].join("\n");});
</script></body>
)";

}  // namespace

void BrowserTest::SetUp() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    const std::string look = absl::StrCat("command -v ", name, " >/dev/null 2>&1");
    if (std::system(look.c_str()) == 0) program_ = name;
  }
  if (program_.empty()) GTEST_SKIP() << "skipped, because Chromium is not installed";
  std::string pattern = (std::filesystem::temp_directory_path() / "siphon-browser-XXXXXX").string();
  directory_ = mkdtemp(pattern.data());
}
void BrowserTest::TearDown() {
  if (!directory_.empty()) std::filesystem::remove_all(directory_);
}

std::string BrowserTest::Look(absl::string_view html, absl::string_view scheme) const {
  const std::string page = absl::StrReplaceAll(html, {{"&", "&amp;"}, {"\"", "&quot;"}});
  std::ofstream(directory_ + "/page.html") << absl::StrReplaceAll(kObserver, {{"PAGE", page}});
  const std::string command =
      absl::StrCat(program_, " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage",
                   " --user-data-dir=", directory_, "/profile --enable-logging=stderr --v=0",
                   " --blink-settings=preferredColorScheme=", scheme, " --virtual-time-budget=2000",
                   " --dump-dom file://", directory_, "/page.html 2>", directory_, "/log");
  std::string dom;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "no pipe";
  std::array<char, 4096> buffer;
  for (size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    dom.append(buffer.data(), got);
  }
  EXPECT_EQ(pclose(pipe), 0);
  const size_t seen = dom.find("<pre id=\"seen\">");
  std::string log;
  std::ifstream lines(directory_ + "/log");
  for (std::string line; std::getline(lines, line);) {
    if (line.find("CONSOLE") != std::string::npos) absl::StrAppend(&log, line, "\n");
  }
  return absl::StrCat(seen == std::string::npos ? "" : dom.substr(seen), "\nconsole: ", log);
}

}  // namespace siphon
