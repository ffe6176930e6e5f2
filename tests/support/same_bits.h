#ifndef SIPHON_TESTS_SUPPORT_SAME_BITS_H_
#define SIPHON_TESTS_SUPPORT_SAME_BITS_H_

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace siphon {

// Whether both have the same names with the same bits (so 0 and -0 differ, equal NaNs do not). The
// message names the first tensor that differs, its first differing element with both values in
// full, and how many elements and tensors differ.
testing::AssertionResult SameBits(const std::map<std::string, std::vector<float>>& expected,
                                  const std::map<std::string, std::vector<float>>& actual);
testing::AssertionResult SameBits(const std::vector<float>& expected,
                                  const std::vector<float>& actual);
testing::AssertionResult SameBits(double expected, double actual);

}  // namespace siphon

#endif  // SIPHON_TESTS_SUPPORT_SAME_BITS_H_
