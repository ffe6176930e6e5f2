#ifndef SIPHON_PARTITIONER_CUT_GRAPH_H_
#define SIPHON_PARTITIONER_CUT_GRAPH_H_

#include <cstdint>
#include <vector>

#include "partitioner/profile_graph.h"

namespace siphon {

// Nodes of a ProfileGraph that stay together.
struct CutNode {
  std::vector<int> members;  // indices into ProfileGraph::nodes
  int64_t compute_ns = 0;    // forward and backward
  int64_t parameter_bytes = 0;
  int64_t training_state_bytes = 0;
  int64_t stash_bytes = 0;
  int64_t output_bytes = 0;
  std::vector<int> producers;  // indices of cut nodes, ascending, each once
  std::vector<int> consumers;
};

// What of a model has to be cut. `nodes` are in the order of the profile.
struct CutGraph {
  std::vector<CutNode> nodes;
  // Nodes of the profile that cost nothing and join a stage afterwards (PlaceFreeNodes).
  std::vector<int> free_nodes;
};

// Leaves out what costs nothing wherever it stands, which changes no optimum: inputs, sources
// without time, parameters and bytes, and results that nobody takes (no time, no parameters, one
// producer). Requires: CheckGraph(graph) is OK. At least one node stays, if only an idle one.
CutGraph BuildCutGraph(const ProfileGraph& graph);

// The same graph with at most as many nodes: those at either end of an edge become one where the
// producer has no other consumer and the consumer no other producer. A third of the nodes at most,
// the quickest first; unchanged when there is no such edge.
CutGraph JoinNeighbours(const CutGraph& graph);

// Nodes so that producers come before consumers; what follows a node stands next to it where it
// can. Deterministic.
std::vector<int> TopologicalOrder(const CutGraph& graph);

// All nodes of the model, producers before consumers. Deterministic.
std::vector<int> NodeOrder(const ProfileGraph& graph);

// The stage of every node of `graph`, from the stage of the nodes that were cut (stage_of[node] < 0
// for the others): an input stands on stage 0, a free result with its producer, a free source with
// its first consumer.
std::vector<int> PlaceFreeNodes(const ProfileGraph& graph, std::vector<int> stage_of);

}  // namespace siphon

#endif  // SIPHON_PARTITIONER_CUT_GRAPH_H_
