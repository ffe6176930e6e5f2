#ifndef SIPHON_TESTS_TEST_HEADERS_H_
#define SIPHON_TESTS_TEST_HEADERS_H_

// What most tests include, precompiled. Only what changes never: tests name what they use
// themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#endif  // SIPHON_TESTS_TEST_HEADERS_H_
