#include "launch/output/text_table.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

TEST(TextTable, HasNumbersFlushRightAndWordsInTheLastColumnFlushLeft) {
  const std::vector<std::vector<std::string>> rows = {{"a", "10", "one server"},
                                                      {"bb", "9", "two"}};
  EXPECT_EQ(TextTable({"name", "n", "what"}, rows, LastColumn::kWords),
            "name   n  what\n"
            "a     10  one server\n"
            "bb     9  two\n");
  EXPECT_EQ(TextTable({"name", "n", "what"}, rows),
            "name   n        what\n"
            "a     10  one server\n"
            "bb     9         two\n");
}

// A row that ends before the last column has no words in it.
TEST(TextTable, TakesRowsThatAreShorter) {
  EXPECT_EQ(TextTable({"name", "number", "what"}, {{"a", "1"}, {"b"}}, LastColumn::kWords),
            "name  number  what\n"
            "a          1\n"
            "b\n");
}

}  // namespace
}  // namespace siphon
