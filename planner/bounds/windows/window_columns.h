#ifndef SIPHON_PLANNER_BOUNDS_WINDOW_COLUMNS_H_
#define SIPHON_PLANNER_BOUNDS_WINDOW_COLUMNS_H_

#include <vector>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/windows/program_rows.h"
#include "planner/bounds/windows/window_program.h"

namespace siphon {

// What becomes of the activations of one window, in bytes and in time.
struct WindowTerms {
  LinearTerms dropped;
  LinearTerms recompute;
  LinearTerms link;
  LinearTerms uplink;
};

// How one worker's windows are parted among the ways that activations may go.
class WindowColumns {
 public:
  // All but `choices` must outlive this.
  WindowColumns(const BoundFacts& facts, int worker, LayerChoices choices, WindowProgram& made,
                ProgramRows& rows);

  // Adds the window's columns, and the rows that hold among them.
  WindowTerms Add(const MemoryWindow& window);

 private:
  void AddWholeLayers();
  WindowTerms AddFractional(const MemoryWindow& window);
  WindowTerms Whole(const MemoryWindow& window) const;

  const BoundFacts& facts_;
  const int worker_;
  const LayerChoices choices_;
  LinearProgram& program_;
  ProgramRows& rows_;
  // For each kind of layer how many are dropped, away over links, away over the uplink.
  std::vector<int> whole_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_WINDOW_COLUMNS_H_
