#ifndef SIPHON_PARTITIONER_PROFILE_GRAPH_H_
#define SIPHON_PARTITIONER_PROFILE_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/model_profile.h"
#include "planner/units.h"

namespace siphon {

enum class NodeRole {
  kLayer,
  kInput,  // what the model is fed: costs nothing and stands on the first stage
};

// An operation of a model; times and bytes of one minibatch.
struct GraphNode {
  std::string name;
  std::string description;
  NodeRole role = NodeRole::kLayer;
  Nanos forward;
  Nanos backward;
  Bytes output;  // goes to every consumer, and once over a cut; its gradient has the same size
  Bytes parameters;
  Bytes training_state;  // gradients and optimizer state, whatever is in flight
  Bytes stash;           // kept from the forward until the backward
  friend bool operator==(const GraphNode&, const GraphNode&) = default;
};

struct GraphEdge {
  int producer = 0;  // index of a node
  int consumer = 0;
  friend bool operator==(const GraphEdge&, const GraphEdge&) = default;
};

// A model with branches, measured: what a partitioner cuts.
struct ProfileGraph {
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  friend bool operator==(const ProfileGraph&, const ProfileGraph&) = default;
};

// The layers of a profile, each of which takes the output of the one before.
ProfileGraph ChainOf(const ModelProfile& profile);

// Errors: InvalidArgument for a graph that cannot be cut: no node, no layer, an edge without node
// at an end, a cycle (names of the nodes on it), negative figures, or sums above 2^52 (so that all
// sums are exact in 64 bits and in a double).
absl::Status CheckGraph(const ProfileGraph& graph);

}  // namespace siphon

#endif  // SIPHON_PARTITIONER_PROFILE_GRAPH_H_
