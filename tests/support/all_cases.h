#ifndef SIPHON_TESTS_SUPPORT_ALL_CASES_H_
#define SIPHON_TESTS_SUPPORT_ALL_CASES_H_

#include <cstdlib>
#include <string_view>

namespace siphon {

// Whether full products are wanted where tests run a selection that covers all pairs: with
// SIPHON_TEST_ALL=1, as of `tests/run.sh --all`.
inline bool TakesAllCases() {
  const char* const all = std::getenv("SIPHON_TEST_ALL");
  return all != nullptr && std::string_view(all) == "1";
}

}  // namespace siphon

#endif  // SIPHON_TESTS_SUPPORT_ALL_CASES_H_
