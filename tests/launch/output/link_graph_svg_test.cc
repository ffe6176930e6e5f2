#include "launch/output/link_graph_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::Not;

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

LinkGraph TwoNodes() {
  return {.title = "links",
          .hub = "host",
          .nodes = {{.name = "device 0", .lines = {"stage 0"}, .filled = 0.5, .title = "first"},
                    {.name = "device 1", .lines = {"stage 1"}}},
          .links = {{.from = 0, .to = 1, .title = "there"}, {.from = 1, .to = 0, .title = "back"}}};
}

TEST(LinkGraphSvg, DrawsBothDirectionsOfAnIdleLinkOnce) {
  const std::string svg = LinkGraphSvg(TwoNodes());
  EXPECT_EQ(CountOf(svg, "<path class=\"idle\""), 1);
  EXPECT_EQ(CountOf(svg, "<path class=\"used\""), 0);
  EXPECT_THAT(svg, HasSubstr(">device 0</text>"));
  EXPECT_THAT(svg, HasSubstr(">stage 1</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>first</title>"));
  EXPECT_THAT(svg, HasSubstr(">host</text>"));
}

TEST(LinkGraphSvg, DrawsWhatCarriesSomethingAsAnArrowWithItsLabel) {
  LinkGraph graph = TwoNodes();
  graph.links[1].label = "4.2 GiB";
  graph.links.push_back({.from = 0, .to = kGraphHub, .label = "1 GiB"});
  const std::string svg = LinkGraphSvg(graph);
  EXPECT_EQ(CountOf(svg, "<path class=\"used\""), 2);
  EXPECT_EQ(CountOf(svg, "<text class=\"label\""), 2);
  EXPECT_THAT(svg, HasSubstr(">4.2 GiB</text>"));
}

// Links across the whole circle pass near the hub, in the middle.
TEST(LinkGraphSvg, WritesLabelsBesideTheHubAndBesideEachOther) {
  LinkGraph graph{.title = "links", .hub = "host, 4.77 GiB"};
  for (int device = 0; device < 8; ++device) {
    graph.nodes.push_back({.name = absl::StrCat("device ", device), .lines = {"a", "b", "c"}});
    graph.links.push_back({.from = device, .to = (device + 4) % 8, .label = "786 MiB"});
  }
  const std::string svg = LinkGraphSvg(graph);
  std::vector<std::pair<double, double>> labels;
  const std::string tag = "<text class=\"label\" x=\"";
  for (size_t at = svg.find(tag); at != std::string::npos; at = svg.find(tag, at + 1)) {
    size_t digits = 0;
    const double x = std::stod(svg.substr(at + tag.size()), &digits);
    const double y = std::stod(svg.substr(at + tag.size() + digits + 5));
    EXPECT_TRUE(std::abs(x - 500) > 75 || std::abs(y - 333) > 22) << x << ", " << y;
    for (const auto& [other_x, other_y] : labels) {
      EXPECT_TRUE(std::abs(x - other_x) > 40 || std::abs(y - other_y) > 12) << x << ", " << y;
    }
    labels.emplace_back(x, y);
  }
  EXPECT_EQ(labels.size(), 8u);
}

struct Label {
  double x;
  double y;
  double width;
};

// What labels take, at 7 pixels a letter, which is more than any of the font's.
std::vector<Label> LabelsOf(const std::string& svg) {
  std::vector<Label> labels;
  const std::string tag = "<text class=\"label\" x=\"";
  for (size_t at = svg.find(tag); at != std::string::npos; at = svg.find(tag, at + 1)) {
    size_t digits = 0;
    const double x = std::stod(svg.substr(at + tag.size()), &digits);
    const double y = std::stod(svg.substr(at + tag.size() + digits + 5));
    const size_t begin = svg.find('>', at) + 1;
    labels.push_back({x, y, 7.0 * static_cast<double>(svg.find('<', begin) - begin)});
  }
  return labels;
}

bool Overlap(const Label& a, const Label& b) {
  return std::abs(a.x - b.x) * 2 < a.width + b.width && std::abs(a.y - b.y) < 15;
}

// Every device of a DGX-1 parks with all that it has wires to, and with the host: 48 labels.
TEST(LinkGraphSvg, KeepsAllLabelsOfADgx1Apart) {
  constexpr std::pair<int, int> kWired[] = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3},
                                            {1, 5}, {2, 3}, {2, 6}, {3, 7}, {4, 5}, {4, 6},
                                            {4, 7}, {5, 6}, {5, 7}, {6, 7}};
  LinkGraph graph{.title = "links", .hub = "host, 4.77 GiB"};
  for (int device = 0; device < 8; ++device) {
    graph.nodes.push_back({.name = absl::StrCat("device ", device), .lines = {"a", "b", "c"}});
    graph.links.push_back({.from = device, .to = kGraphHub, .label = "1023.9 MiB"});
    graph.links.push_back({.from = kGraphHub, .to = device, .label = "14.3 GiB"});
  }
  for (const auto& [a, b] : kWired) {
    graph.links.push_back({.from = a, .to = b, .label = "14.3 GiB"});
    graph.links.push_back({.from = b, .to = a, .label = "658 MiB"});
  }
  const std::vector<Label> labels = LabelsOf(LinkGraphSvg(graph));
  ASSERT_EQ(labels.size(), 48u);
  for (size_t label = 0; label < labels.size(); ++label) {
    for (size_t other = 0; other < label; ++other) {
      EXPECT_FALSE(Overlap(labels[label], labels[other])) << other << " and " << label;
    }
  }
}

// Straight, they would look like two links to the hub.
TEST(LinkGraphSvg, BendsLinksThatWouldPassBehindTheHub) {
  LinkGraph graph{.title = "links", .hub = "host"};
  for (int device = 0; device < 8; ++device) {
    graph.nodes.push_back({.name = absl::StrCat("device ", device)});
  }
  graph.links = {{.from = 0, .to = 4}, {.from = 0, .to = 1}};
  const std::string svg = LinkGraphSvg(graph);
  const std::string tag = "<path class=\"idle\" d=\"M";
  const size_t across = svg.find(tag);
  const size_t beside = svg.find(tag, across + 1);
  ASSERT_NE(beside, std::string::npos);
  EXPECT_EQ(svg.substr(beside, svg.find('"', beside + tag.size()) - beside).find('Q'),
            std::string::npos);
  // From top to bottom: its middle is half as far from the line as where the tangents meet.
  const size_t bend = svg.find('Q', across);
  ASSERT_LT(bend, beside);
  const double x = std::stod(svg.substr(bend + 1));
  EXPECT_GT(std::abs(x - 500) / 2, 75) << svg.substr(across, 80);
  graph.hub = "";
  EXPECT_EQ(CountOf(LinkGraphSvg(graph), "Q"), 0);
}

TEST(LinkGraphSvg, FillsANodeToItsLevel) {
  LinkGraph graph = TwoNodes();
  const auto height = [](const LinkGraph& drawn) {
    const std::string svg = LinkGraphSvg(drawn);
    const size_t level = svg.find("class=\"level\"");
    const size_t at = svg.find("height=\"", level) + 8;
    return std::stod(svg.substr(at));
  };
  const double half = height(graph);
  graph.nodes[0].filled = 1;
  EXPECT_NEAR(height(graph), 2 * half, 0.11);
  graph.nodes[0].filled = 3;
  EXPECT_NEAR(height(graph), 2 * half, 0.11);
}

TEST(LinkGraphSvg, MeansNamesLiterally) {
  LinkGraph graph = TwoNodes();
  graph.nodes[0].name = "<script>";
  graph.hub = "";
  const std::string svg = LinkGraphSvg(graph);
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;"));
}

}  // namespace
}  // namespace siphon
