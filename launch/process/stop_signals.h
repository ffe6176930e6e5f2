#ifndef SIPHON_LAUNCH_PROCESS_STOP_SIGNALS_H_
#define SIPHON_LAUNCH_PROCESS_STOP_SIGNALS_H_

#include <csignal>
#include <utility>
#include <vector>

namespace siphon {

// Counts the signals by which a user tells the parent of a job to stop, while it exists. One at a
// time; SIGINT, SIGTERM and SIGUSR1 are caught in any case, SIGHUP unless it is ignored (nohup),
// SIGPIPE is ignored.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();  // restores what was there
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int interrupts() const;  // SIGINTs; two within 20 ms are one (timeout(1) sends to the process,
                           // then to its group)
  int requests() const;    // SIGTERM, SIGUSR1 and SIGHUP

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_STOP_SIGNALS_H_
