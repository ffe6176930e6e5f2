#ifndef SIPHON_PARTITIONER_CUT_STATES_H_
#define SIPHON_PARTITIONER_CUT_STATES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "partitioner/cut_graph.h"
#include "partitioner/node_set.h"

namespace siphon {

// A place where the model can be cut: what runs before the cut, with all that it needs. Sums are of
// the nodes before the cut, so that a stage costs the difference of two states.
struct CutState {
  NodeSet before;
  int nodes = 0;
  int64_t compute_ns = 0;
  int64_t parameter_bytes = 0;
  int64_t training_state_bytes = 0;
  int64_t stash_bytes = 0;
  // Outputs made before the cut and taken after it, each once.
  int64_t crossing_bytes = 0;
  // What PipeDream's optimizer counts instead: outputs of the last nodes before the cut, and of
  // every earlier node with a consumer that is not an ancestor of all of these. Never less.
  int64_t frontier_bytes = 0;
};

enum class CutChoice {
  kEvery,          // every set of nodes that holds its own producers
  kOfFirstSource,  // as PipeDream: other sources come with the first node that needs them
  kAlongOneOrder,  // TopologicalOrder, cut anywhere
};

struct CutStates {
  CutGraph graph;  // nodes that the sets are of
  // By number of nodes: the first holds none, the last all. A state is before another if its set is
  // a subset of the other's.
  std::vector<CutState> states;
  std::string left_out;  // for people; empty: the choice is complete
};

// Lists cuts. More than `most_states` of them (branches side by side multiply) are thinned out: by
// joining the quickest neighbours until few enough remain, then by cutting one order only, at
// equal distances of work; `left_out` says so. Requires: graph.nodes not empty, most_states >= 2.
CutStates ListCuts(const CutGraph& graph, CutChoice choice, size_t most_states);

}  // namespace siphon

#endif  // SIPHON_PARTITIONER_CUT_STATES_H_
