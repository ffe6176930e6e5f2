#ifndef SIPHON_PLANNER_BOUNDS_PROGRAM_ROWS_H_
#define SIPHON_PLANNER_BOUNDS_PROGRAM_ROWS_H_

#include <string>
#include <vector>

#include "planner/bounds/facts/swap_limits.h"
#include "planner/bounds/linear/linear_program.h"
#include "planner/bounds/windows/window_program.h"
#include "planner/units.h"

namespace siphon {

using LinearTerms = std::vector<LinearTerm>;
void Append(LinearTerms& terms, const LinearTerms& more, double factor = 1);

// A row of one term a column; none where no term is left.
void AddMerged(LinearProgram& program, const LinearTerms& terms, double least);

// Writes columns and rows in a program's units, and those that say what a link carries in a time.
class ProgramRows {
 public:
  // No step is longer than so many times the schedule's longest path, or the bound ends there.
  static constexpr double kLongest = 64;

  // The program must outlive this. Requires: its unit of time is set; `byte_unit` is positive.
  ProgramRows(WindowProgram& made, Bytes byte_unit);

  double Time(Nanos time) const;
  double Size(Bytes bytes) const;
  // Units of bytes in a unit of time.
  double Rate(BytesPerSecond rate) const;
  // Units of time for a unit of bytes, at so many nanoseconds a byte.
  double TimeOfUnit(double nanos_a_byte) const;

  int Cause(std::string text);
  // A column from 0 to so many bytes.
  int Part(Bytes most);
  void AddAtMost(const LinearTerms& terms, double most);
  // `bytes` fit into the time of that column at that rate.
  void AddCarried(int time, BytesPerSecond rate, const LinearTerms& bytes, int cause);
  // The same, both ways over some uplinks, whose directions may run together.
  void AddUplinks(int time, const std::vector<UplinkRates>& uplinks, const LinearTerms& out,
                  const LinearTerms& in, int cause);
  // The same over one uplink in a time that is a sum of columns, without columns of its own: what
  // it carries in a unit of time lies within the hull of its three pairs of rates and less.
  void AddUplink(const LinearTerms& time, const UplinkRates& uplink, const LinearTerms& out,
                 const LinearTerms& in);
  // The same of all uplinks that some workers share.
  void AddShared(const LinearTerms& time, const SharedUplinks& shared, const LinearTerms& out,
                 const LinearTerms& in);

 private:
  WindowProgram& made_;
  const double byte_unit_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_PROGRAM_ROWS_H_
