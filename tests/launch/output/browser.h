#ifndef SIPHON_TESTS_LAUNCH_OUTPUT_BROWSER_H_
#define SIPHON_TESTS_LAUNCH_OUTPUT_BROWSER_H_

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/string_view.h"

namespace siphon {

// A test that looks at a page with a real browser: Chromium, without a window. Skipped where there
// is none.
class BrowserTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Opens a page with a timeline on a phone, points at the timeline, and tells what is to be seen,
  // line by line, and at the end all that the page said on its console. `scheme`: "0" dark, "1"
  // light.
  std::string Look(absl::string_view html, absl::string_view scheme) const;

 private:
  std::string program_;
  std::string directory_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_OUTPUT_BROWSER_H_
