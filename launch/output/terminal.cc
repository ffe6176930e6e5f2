#include "launch/output/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace siphon {
namespace {

constexpr int kUsualColumns = 80;

}  // namespace

int TerminalColumns() {
  int columns = 0;
  const char* parents = std::getenv("SIPHON_TERMINAL_COLUMNS");
  if (parents != nullptr && absl::SimpleAtoi(parents, &columns) && columns > 0) return columns;
  if (isatty(STDERR_FILENO) == 0) return 0;
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

}  // namespace siphon
