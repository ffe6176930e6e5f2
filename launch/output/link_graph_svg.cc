#include "launch/output/link_graph_svg.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/output/xml_text.h"

namespace siphon {
namespace {

// All in the SVG's own units, pixels at its natural size.
constexpr int kWidth = 1000;
constexpr int kHeight = 640;
constexpr int kTitleHeight = 26;
constexpr double kNodeWidth = 118;
constexpr double kNameHeight = 20;
constexpr double kLineHeight = 14;
constexpr double kHubWidth = 150;
constexpr double kHubHeight = 44;
constexpr double kLetterWidth = 7;
constexpr double kLabelHeight = 15;
constexpr double kBend = 0.12;  // of a curve, as a part of its length
// Along a link, as parts of it: where its label is tried, from the middle out.
constexpr double kLabelStep = 0.02;
constexpr int kLabelSteps = 22;
// Between the hub and links that pass it.
constexpr double kClear = 12;

constexpr absl::string_view kStyle = R"(<style>
.links{color-scheme:light dark;font:11px system-ui,sans-serif}
.links text{fill:#24292f;text-anchor:middle;pointer-events:none}
.links .title{font-size:14px;font-weight:600;text-anchor:start}.links .name{font-weight:600}
.links .idle{stroke:#8c959f;stroke-opacity:.35;fill:none}
.links .used{stroke:#8250df;stroke-width:2.5;fill:none}.links .tip{fill:#8250df}
.links .label{font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:4px}
.links .box{fill:#fff;stroke:#57606a}.links .level{fill:#54aeff;fill-opacity:.35}
@media (prefers-color-scheme:dark){.links text{fill:#e6edf3}.links .label{stroke:#0d1117}
.links .box{fill:#0d1117;stroke:#9198a1}.links .used{stroke:#ab7df8}.links .tip{fill:#ab7df8}}
</style>
)";

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  Point middle;
  double width = 0;
  double height = 0;
};

std::string At(const Point& point) { return absl::StrFormat("%.1f,%.1f", point.x, point.y); }

class GraphWriter {
 public:
  explicit GraphWriter(const LinkGraph& graph) : graph_(graph) {
    size_t lines = 0;
    for (const LinkGraphNode& node : graph.nodes) lines = std::max(lines, node.lines.size());
    node_height_ = kNameHeight + kLineHeight * static_cast<double>(lines) + 8;
  }

  std::string Write() {
    absl::StrAppend(&text_,
                    "<svg class=\"links\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 "
                    "0 ",
                    kWidth, " ", kHeight, "\" role=\"img\">\n", kStyle,
                    "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
                    "markerWidth=\"5\" markerHeight=\"5\" orient=\"auto\"><path class=\"tip\" "
                    "d=\"M0 0L8 4L0 8z\"/></marker></defs>\n<text class=\"title\" x=\"0\" "
                    "y=\"16\">",
                    XmlText(graph_.title), "</text>\n");
    WriteIdleLinks();
    TakeBoxes();
    for (const GraphLink& link : graph_.links) {
      if (!link.label.empty()) WriteUsedLink(link);
    }
    if (!graph_.hub.empty()) WriteHub();
    for (size_t node = 0; node < graph_.nodes.size(); ++node) WriteNode(node);
    for (const std::string& label : labels_) absl::StrAppend(&text_, label);
    absl::StrAppend(&text_, "</svg>\n");
    return std::move(text_);
  }

 private:
  // The first node is at the top; the hub in the middle.
  Point Place(int node) const {
    const Point middle{kWidth / 2.0, kTitleHeight + (kHeight - kTitleHeight) / 2.0};
    if (node == kGraphHub) return middle;
    const double turn = 2 * std::numbers::pi * node / static_cast<double>(graph_.nodes.size());
    const double wide = (kWidth - kNodeWidth) / 2 - 4;
    const double high = (kHeight - kTitleHeight - node_height_) / 2 - 4;
    return {middle.x + wide * std::sin(turn), middle.y - high * std::cos(turn)};
  }

  // Where the line from `inside`, the middle of a box, to `outside` leaves the box.
  static Point Border(Point inside, Point outside, double width, double height) {
    const double x = outside.x - inside.x;
    const double y = outside.y - inside.y;
    const double far = std::max(std::abs(x) * 2 / width, std::abs(y) * 2 / height);
    if (far <= 1) return inside;
    return {inside.x + x / far, inside.y + y / far};
  }

  Point BorderOf(int node, Point outside) const {
    return node == kGraphHub ? Border(Place(node), outside, kHubWidth, kHubHeight)
                             : Border(Place(node), outside, kNodeWidth, node_height_);
  }

  // How far the middle of a straight link has to be shifted to its left to pass the hub; 0: it
  // does.
  double ShiftPastHub(const GraphLink& link) const {
    if (graph_.hub.empty() || link.from == kGraphHub || link.to == kGraphHub) return 0;
    const Point from = Place(link.from);
    const Point to = Place(link.to);
    const Point hub = Place(kGraphHub);
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    if (length == 0) return 0;
    const Point left{(to.y - from.y) / length, (from.x - to.x) / length};
    const double beside = (from.x - hub.x) * left.x + (from.y - hub.y) * left.y;
    const double half =
        std::abs(left.x) * kHubWidth / 2 + std::abs(left.y) * kHubHeight / 2 + kClear;
    return std::abs(beside) < half ? half - beside : 0;
  }

  // Whether it would look like two links to the host.
  bool IsBehindHub(const GraphLink& link) const { return ShiftPastHub(link) > 0; }

  // Where the tangents of both ends of a bent link meet; its middle is half as far to the left.
  Point BendOf(const GraphLink& link) const {
    const Point from = Place(link.from);
    const Point to = Place(link.to);
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    const double bend = length == 0 ? kBend : std::max(kBend, 2 * ShiftPastHub(link) / length);
    return {(from.x + to.x) / 2 + (to.y - from.y) * bend,
            (from.y + to.y) / 2 - (to.x - from.x) * bend};
  }

  // One line for both directions of what carries nothing.
  void WriteIdleLinks() {
    std::set<std::pair<int, int>> drawn;
    for (const GraphLink& link : graph_.links) {
      if (!drawn.insert(std::minmax(link.from, link.to)).second) continue;
      absl::StrAppend(&text_, "<path class=\"idle\" d=\"M", At(Place(link.from)),
                      IsBehindHub(link) ? absl::StrCat("Q", At(BendOf(link)), " ") : "L",
                      At(Place(link.to)), "\"><title>", XmlText(link.title), "</title></path>\n");
    }
  }

  // Bent to its left, so that both directions can be told apart.
  void WriteUsedLink(const GraphLink& link) {
    const Point bend = BendOf(link);
    const Point begin = BorderOf(link.from, bend);
    const Point end = BorderOf(link.to, bend);
    absl::StrAppend(&text_, "<path class=\"used\" marker-end=\"url(#tip)\" d=\"M", At(begin), "Q",
                    At(bend), " ", At(end), "\"><title>", XmlText(link.title), "</title></path>\n");
    const Point label = PlaceLabel(begin, bend, end, link.label);
    labels_.push_back(absl::StrFormat("<text class=\"label\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                                      label.x, label.y + 4, XmlText(link.label)));
  }

  // What both have, in square pixels.
  static double Covered(const Box& a, const Box& b) {
    const auto both = [](double between, double size_a, double size_b) {
      return std::min({(size_a + size_b) / 2 - std::abs(between), size_a, size_b});
    };
    const double wide = both(a.middle.x - b.middle.x, a.width, b.width);
    const double high = both(a.middle.y - b.middle.y, a.height, b.height);
    return wide > 0 && high > 0 ? wide * high : 0;
  }

  // On the curve, as near to its middle as no box and no other label is, or, where it is full, as
  // few of them as can be.
  Point PlaceLabel(Point begin, Point bend, Point end, const std::string& label) {
    const auto at = [&](double part) {
      const double a = (1 - part) * (1 - part);
      const double b = 2 * part * (1 - part);
      const double c = part * part;
      const Point middle{a * begin.x + b * bend.x + c * end.x,
                         a * begin.y + b * bend.y + c * end.y};
      return Box{middle, kLetterWidth * static_cast<double>(label.size()), kLabelHeight};
    };
    Box best;
    double least = std::numeric_limits<double>::infinity();
    for (int step = 0; step <= kLabelSteps && least > 0; ++step) {
      for (const int side : {-1, 1}) {
        const Box box = at(0.5 + side * step * kLabelStep);
        double covered = 0;
        for (const Box& taken : taken_) covered += Covered(box, taken);
        if (covered >= least) continue;
        least = covered;
        best = box;
      }
    }
    taken_.push_back(best);
    return best.middle;
  }

  void TakeBoxes() {
    if (!graph_.hub.empty()) taken_.push_back({Place(kGraphHub), kHubWidth, kHubHeight});
    for (size_t node = 0; node < graph_.nodes.size(); ++node) {
      taken_.push_back({Place(static_cast<int>(node)), kNodeWidth, node_height_});
    }
  }

  void WriteHub() {
    const Point middle = Place(kGraphHub);
    absl::StrAppendFormat(&text_,
                          "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                          "height=\"%.1f\" rx=\"6\"/>\n<text class=\"name\" x=\"%.1f\" "
                          "y=\"%.1f\">%s</text>\n",
                          middle.x - kHubWidth / 2, middle.y - kHubHeight / 2, kHubWidth,
                          kHubHeight, middle.x, middle.y + 4, XmlText(graph_.hub));
  }

  void WriteNode(size_t index) {
    const LinkGraphNode& node = graph_.nodes[index];
    const Point middle = Place(static_cast<int>(index));
    const double left = middle.x - kNodeWidth / 2;
    const double top = middle.y - node_height_ / 2;
    const double level = node_height_ * std::clamp(node.filled, 0.0, 1.0);
    const std::string title = absl::StrCat("<title>", XmlText(node.title), "</title>");
    absl::StrAppendFormat(&text_,
                          "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                          "height=\"%.1f\" rx=\"6\">%s</rect>\n",
                          left, top, kNodeWidth, node_height_, title);
    absl::StrAppendFormat(&text_,
                          "<rect class=\"level\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                          "height=\"%.1f\" rx=\"6\">%s</rect>\n",
                          left, top + node_height_ - level, kNodeWidth, level, title);
    absl::StrAppendFormat(&text_, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                          middle.x, top + 15, XmlText(node.name));
    double y = top + kNameHeight + 10;
    for (const std::string& line : node.lines) {
      absl::StrAppendFormat(&text_, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", middle.x, y,
                            XmlText(line));
      y += kLineHeight;
    }
  }

  const LinkGraph& graph_;
  double node_height_ = 0;
  std::string text_;
  std::vector<Box> taken_;           // boxes and labels so far
  std::vector<std::string> labels_;  // above everything else
};

}  // namespace

std::string LinkGraphSvg(const LinkGraph& graph) { return GraphWriter(graph).Write(); }

}  // namespace siphon
