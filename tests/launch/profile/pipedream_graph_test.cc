#include "launch/profile/pipedream_graph.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// A node line without its id and description.
std::string Figures(const std::string& forward = "1.000", const std::string& size = "8.000") {
  return absl::StrCat("forward_compute_time=", forward,
                      ", backward_compute_time=2.000, activation_size=", size,
                      ", parameter_size=4.000");
}

std::string MessageFor(const std::string& text) {
  const absl::StatusOr<ProfileGraph> graph = ParsePipeDreamGraph(text, "g.txt");
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(graph.status().message());
}

TEST(PipeDreamGraph, ReadsNodesAndEdges) {
  const absl::StatusOr<ProfileGraph> graph = ParsePipeDreamGraph(
      "node3 -- LSTM(2048, 1024) -- forward_compute_time=3.190, backward_compute_time=5.348, "
      "activation_size=[6291456.0; 131072.0; 131072.0], parameter_size=50364416.000 -- stage_id=1\n"
      "node1 -- Input0 -- forward_compute_time=635.902, backward_compute_time=0.000, "
      "activation_size=154140672.0, parameter_size=0.000\n"
      "node4 -- ReLU(inplace) -- forward_compute_time=0.5, backward_compute_time=0, "
      "activation_size=100, parameter_size=0\n"
      "\tnode1 -- node3\n"
      "\tnode3 -- node4\n",
      "gnmt.txt");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ProfileGraph expected;
  expected.nodes = {{.name = "node3",
                     .description = "LSTM(2048, 1024)",
                     .forward = Nanos(3'190'000),
                     .backward = Nanos(5'348'000),
                     .output = Bytes(6'291'456 + 2 * 131'072),
                     .parameters = Bytes(50'364'416),
                     .training_state = Bytes(2 * 50'364'416),
                     .stash = Bytes(6'291'456 + 2 * 131'072)},
                    {.name = "node1", .description = "Input0", .role = NodeRole::kInput},
                    {.name = "node4",
                     .description = "ReLU(inplace)",
                     .forward = Nanos(500'000),
                     .output = Bytes(100)}};
  expected.edges = {{1, 0}, {0, 2}};
  EXPECT_EQ(*graph, expected);
}

TEST(PipeDreamGraph, ReadsWhatIsMetInTheWild) {
  // Edges first, indented by a blank and a tab; bare digits for a name; commas, equal signs and two
  // dashes in a description; Windows line ends; blanks at the end; no end of the last line.
  const absl::StatusOr<ProfileGraph> graph = ParsePipeDreamGraph(
      absl::StrCat(" \t1 -- 2\r\n\r\n1 -- A(x=1, y=(2, 3)) -- odd -- ", Figures("7e-1"), "  \r\n",
                   "2 -- B -- ", Figures("1", "[3]"), " -- vlayer_id=12\n1 -- 2"),
      "g.txt");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes.size(), 2U);
  EXPECT_EQ(graph->nodes[0].description, "A(x=1, y=(2, 3)) -- odd");
  EXPECT_EQ(graph->nodes[0].forward, Nanos(700'000));
  EXPECT_EQ(graph->nodes[1].output, Bytes(3));
  EXPECT_EQ(graph->edges, (std::vector<GraphEdge>{{0, 1}}));
}

TEST(PipeDreamGraph, TakesInputsOnlyWhereNothingFeedsThem) {
  const absl::StatusOr<ProfileGraph> graph = ParsePipeDreamGraph(
      absl::StrCat("a -- Conv -- ", Figures(), "\nb -- InputNorm -- ", Figures(), "\n\ta -- b\n"),
      "g.txt");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->nodes[1].role, NodeRole::kLayer);
  EXPECT_EQ(graph->nodes[1].forward, Nanos(1'000'000));
}

TEST(PipeDreamGraph, NamesLineAndColumnOfWhatIsWrong) {
  const std::string form =
      "a node is: id -- description -- forward_compute_time=MS, backward_compute_time=MS, "
      "activation_size=BYTES, parameter_size=BYTES";
  const std::string node = absl::StrCat("a -- A -- ", Figures(), "\n");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", absl::StrCat("g.txt: has no node; ", form)},
      {absl::StrCat(node, "\n\twhat is this\n"),
       "g.txt:3:2: 'what is this' is neither a node nor an edge; an edge is: producer -- consumer"},
      {absl::StrCat(node, "\ta -- b -- c\n"),
       "g.txt:2:2: 'a -- b -- c' is neither a node nor an edge; an edge is: producer -- consumer"},
      {absl::StrCat(node, "\ta -- b\n"),
       "g.txt:2:7: no node is called 'b'; the file has 1 nodes, from 'a' to 'a'"},
      {absl::StrCat(node, "\ta -- a\n"), "g.txt:2:2: node 'a' cannot take its own output"},
      {absl::StrCat(node, node), "g.txt:2:1: node 'a' stands on line 1 already; names are unique"},
      {absl::StrCat("a -- A -- ", Figures("fast")),
       "g.txt:1:32: forward_compute_time: 'fast' is not a number; write one such as 12.500"},
      {absl::StrCat("a -- A -- ", Figures("nan")),
       "g.txt:1:32: forward_compute_time: 'nan' is not a number; write one such as 12.500"},
      {absl::StrCat("a -- A -- ", Figures("-1.5")),
       "g.txt:1:32: forward_compute_time: '-1.5' is negative; times and sizes are 0 or more"},
      {absl::StrCat("a -- A -- ", Figures("1", "1e30")),
       "g.txt:1:80: activation_size: '1e30' is too large; it must stay below 2^62 ns or bytes"},
      {absl::StrCat("a -- A -- ", Figures("1", "[1; 2")),
       "g.txt:1:85: activation_size: the list has no end; write [BYTES; BYTES]"},
      {"a -- A -- forward_compute_time=1, activation_size=2",
       absl::StrCat("g.txt:1:35: 'backward_compute_time=' must stand here, not 'activation_size'; ",
                    form)},
      {"forward_compute_time=1", absl::StrCat("g.txt:1:1: is not a node; ", form)},
      {absl::StrCat("a -- A -- ", Figures(), " -- depth=1"),
       "g.txt:1:112: '-- depth=1' follows the figures; only '-- stage_id=N' may"},
      {absl::StrCat(node, "b -- B -- ", Figures(), "\n\ta -- b\n\tb -- a\n"),
       "g.txt: the graph has a cycle: a -> b -> a"},
      {absl::StrCat("a -- Input -- ", Figures()),
       "g.txt: the model has 1 nodes, none of which is a layer to place"}};
  for (const auto& [text, message] : cases) EXPECT_EQ(MessageFor(text), message);
}

class ProfileGraphFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "siphon-graph-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& text) {
    const std::string path = directory_ + "/profile";
    std::ofstream(path) << text;
    return path;
  }

  std::string directory_;
};

TEST_F(ProfileGraphFile, ReadsBothFormats) {
  const auto graph = LoadProfileGraph(Write(absl::StrCat("a -- A -- ", Figures(), "\n")));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->nodes[0].name, "a");
  const auto chain = LoadProfileGraph(Write(
      "microbatch: 2\nlayers:\n"
      "- {name: first, forward: 1ms, input_backward: 2ms, weight_backward: 3ms,\n"
      "   optimizer: 1ms, parameters: 8B, gradients: 8B, optimizer_state: 16B, boundary: 5B,\n"
      "   saved: [{name: x, bytes: 7B}, {name: y, bytes: 2B}]}\n"
      "- {name: second, forward: 0ns}\n"));
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->nodes[0], (GraphNode{.name = "first",
                                        .forward = Nanos(1'000'000),
                                        .backward = Nanos(5'000'000),
                                        .output = Bytes(5),
                                        .parameters = Bytes(8),
                                        .training_state = Bytes(24),
                                        .stash = Bytes(9)}));
  EXPECT_EQ(chain->edges, (std::vector<GraphEdge>{{0, 1}}));
}

TEST_F(ProfileGraphFile, SaysWhatIsMissing) {
  EXPECT_EQ(LoadProfileGraph(directory_ + "/none").status(),
            absl::NotFoundError(absl::StrCat("cannot read profile '", directory_,
                                             "/none': No such file or directory")));
  EXPECT_EQ(
      LoadProfileGraph(directory_).status(),
      absl::NotFoundError(absl::StrCat("cannot read profile '", directory_, "': Is a directory")));
  const std::string path = Write("microbatch: 1\nlayers: []\n");
  EXPECT_EQ(LoadProfileGraph(path).status(),
            absl::InvalidArgumentError(
                absl::StrCat(path,
                             ":2:9: layers: there are none; write a list of '- name: ...', the "
                             "model's first layer first")));
}

}  // namespace
}  // namespace siphon
