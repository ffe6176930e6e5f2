// Text that is no job file: each is refused with its place, at once.

#include "launch/config/config_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/launch/config/config_fixture.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(ConfigTree, KeepsPlacesOrderAndQuotes) {
  const auto root = ParseConfigTree("a: 1\nb:\n  c: 'x'\n  d: [y, z]\n  e:\n", "job.yaml");
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_EQ(root->kind, ConfigNode::Kind::kMap);
  ASSERT_EQ(root->items.size(), 2u);
  EXPECT_EQ(root->keys[1].text, "b");
  EXPECT_EQ(root->keys[1].line, 2);
  const ConfigNode& section = root->items[1];
  ASSERT_EQ(section.items.size(), 3u);
  EXPECT_EQ(section.items[0].text, "x");
  EXPECT_TRUE(section.items[0].quoted);
  EXPECT_EQ(section.items[0].line, 3);
  EXPECT_EQ(section.items[0].column, 6);
  EXPECT_EQ(section.items[1].items[1].text, "z");
  EXPECT_FALSE(section.items[1].items[1].quoted);
  EXPECT_EQ(section.items[2].kind, ConfigNode::Kind::kEmpty);
}

TEST(ConfigTree, CarriageReturnsByteOrderMarksAndTabsBetweenWordsAreHarmless) {
  const auto plain = ParseJobConfig("train:\n  steps: 5\n  seed: 7\n", "job.yaml", {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  for (const char* text :
       {"train:\r\n  steps: 5\r\n  seed: 7\r\n", "\xEF\xBB\xBFtrain:\n  steps: 5\n  seed: 7\n",
        "train:\t# a tab\n  steps:\t5\t\n\t\n\t# only a comment\n  seed: 7\n"}) {
    const auto job = ParseJobConfig(text, "job.yaml", {});
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(*job, *plain);
  }
}

TEST(ConfigTree, RefusesTabsInTheIndentation) {
  EXPECT_EQ(Refusal("train:\n\tsteps: 5\n"),
            "job.yaml:2:1: a tab in the indentation; indent with spaces");
  EXPECT_EQ(Refusal("train:\n  \tsteps: 5\n"),
            "job.yaml:2:3: a tab in the indentation; indent with spaces");
}

TEST(ConfigTree, RefusesWhatIsNotText) {
  EXPECT_EQ(Refusal(std::string("train:\n  st\0ps: 5\n", 17)),
            "job.yaml:2:5: a NUL byte; a job file is text, this looks binary");
  EXPECT_EQ(Refusal("train:\n  name: \x01\n"), "job.yaml:2:9: control character 0x01; remove it");
  EXPECT_EQ(Refusal("data:\n  path: caf\xE9\n"),
            "job.yaml:2:12: byte 0xe9 is not UTF-8; save the file as UTF-8");
  for (const char* overlong :
       {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
    EXPECT_THAT(Refusal(overlong), HasSubstr("is not UTF-8")) << overlong;
  }
  EXPECT_EQ(Refusal("data:\n  path: caf\xC3\xA9/\xE6\x96\x87/\xF0\x9F\x98\x80.txt\n"), "accepted");
}

TEST(ConfigTree, RefusesWhatIsNoMap) {
  EXPECT_EQ(Refusal("- a\n- b\n"),
            "job.yaml:1:1: the file is a list; write sections, such as 'model:'");
  EXPECT_EQ(Refusal("hello\n"),
            "job.yaml:1:1: the file is 'hello'; write sections, such as 'model:'");
  EXPECT_EQ(Refusal("# nothing\n"),
            "job.yaml:1:1: the file is empty; write sections such as model, data, train, pipeline, "
            "launch, memory, topology, checkpoint, output");
  EXPECT_EQ(Refusal("? [a]\n: 1\n"), "job.yaml:1:3: a key that is no word; write 'key: value'");
}

TEST(ConfigTree, RefusesBrokenYaml) {
  EXPECT_EQ(
      Refusal("train:\n  steps: [1, 2\n"),
      "job.yaml:3:1: not YAML: end of sequence flow not found; close the bracket, or indent the "
      "line like the keys around it");
  EXPECT_EQ(Refusal("data:\n  path: \"runs/a.txt\ntrain:\n  steps: 3\n"),
            "job.yaml:5:1: not YAML: a quote is opened above and not closed; close it");
  EXPECT_EQ(Refusal("data:\n  path: 'runs/a.txt"),
            "job.yaml:3:1: not YAML: a quote is opened above and not closed; close it");
  EXPECT_EQ(
      Refusal("train:\n  steps: 1\n bad: 2\n"),
      "job.yaml:3:2: not YAML: end of map not found; close the bracket, or indent the line like "
      "the keys around it");
}

TEST(ConfigTree, RefusesASecondDocument) {
  EXPECT_EQ(Refusal("train:\n  steps: 1\n---\ntrain:\n  steps: 2\n"),
            "job.yaml:4:1: a second document; a job file has one, remove the '---'");
}

TEST(ConfigTree, RefusesAnchorsAliasesAndTags) {
  EXPECT_EQ(Refusal("train: &a\n  steps: 1\n"),
            "job.yaml:1:8: an anchor; a job file has no anchors, write the value itself");
  EXPECT_EQ(Refusal("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"),
            "job.yaml:1:4: an anchor; a job file has no anchors, write the value itself");
  EXPECT_EQ(Refusal("train:\n  steps: !!int 1\n"),
            "job.yaml:2:10: tag 'tag:yaml.org,2002:int'; a job file has no tags, remove it");
}

TEST(ConfigTree, RefusesDeepNestingWithoutDeepRecursion) {
  EXPECT_EQ(Refusal("a: " + Repeat("[", 9) + Repeat("]", 9)),
            "job.yaml:1:11: nested deeper than 8 levels; a job file has sections, keys and lists");
  for (const char* opening : {"[", "{a: ", "- ", "? ", "[[", "{? ", "!a [", "&a ["}) {
    const std::string text = Repeat(opening, 4000);
    EXPECT_THAT(Refusal(text), StartsWith("job.yaml:1:")) << opening;
  }
}

TEST(ConfigTree, RefusesFilesThatAreTooLargeWithoutReadingThem) {
  EXPECT_EQ(Refusal(Repeat("[", 10'000'000)),
            "job.yaml: 10000000 bytes; a job file has at most 1048576");
}

}  // namespace
}  // namespace siphon
