#ifndef SIPHON_LAUNCH_OUTPUT_LINK_GRAPH_SVG_H_
#define SIPHON_LAUNCH_OUTPUT_LINK_GRAPH_SVG_H_

#include <string>
#include <vector>

namespace siphon {

// A device or a drive, with what stands under its name.
struct LinkGraphNode {
  std::string name;                // "GPU 3"
  std::vector<std::string> lines;  // "stage 2", "30.1 of 32.0 GiB"; a few
  double filled = 0;               // of its memory, 0 to 1; drawn as the height of a level
  std::string title;               // told when pointed at
};

// Where links go that lead to no node: the host.
inline constexpr int kGraphHub = -1;

// What goes, or could go, from one node to another.
struct GraphLink {
  int from = 0;
  int to = 0;         // or kGraphHub
  std::string label;  // "4.2 GiB": it carries that; empty: it carries nothing
  std::string title;
};

struct LinkGraph {
  std::string title;
  std::string hub;  // "host, 12.3 GiB"; empty: there is none
  std::vector<LinkGraphNode> nodes;
  std::vector<GraphLink> links;
};

// Nodes on a circle around the hub, as one self-contained SVG: links that carry something with
// arrows and labels, the others thin. As wide as its page, light or dark as the reader prefers.
// Pure: the same graph gives the same text.
std::string LinkGraphSvg(const LinkGraph& graph);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_LINK_GRAPH_SVG_H_
