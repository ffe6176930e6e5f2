#ifndef SIPHON_LAUNCH_OUTPUT_TERMINAL_H_
#define SIPHON_LAUNCH_OUTPUT_TERMINAL_H_

namespace siphon {

// Width of the terminal that shows this process's standard error; 0 if none does. mpirun stands
// between a rank and the terminal, so the parent of `siphon train` hands its own down in
// SIPHON_TERMINAL_COLUMNS; never ask isatty in a rank.
int TerminalColumns();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_TERMINAL_H_
