#include "swap/device/copy_trial.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "planner/status.h"

namespace siphon {
namespace {

Nanos FastestChunk(const ChunkTimes& times) {
  Nanos fastest(std::numeric_limits<int64_t>::max());
  Nanos before(0);
  for (const Nanos there : times) {
    fastest = std::min(fastest, there - before);
    before = there;
  }
  return fastest;
}

Bytes MovedUntil(Nanos end, const ChunkTimes& times, Bytes chunk) {
  const Nanos fastest = FastestChunk(times);
  Bytes moved(0);
  for (const Nanos there : times) {
    if (there <= end) {
      moved += chunk;
      continue;
    }
    const int64_t began = there.value - fastest.value;
    if (began >= end.value) return moved;
    const double share =
        static_cast<double>(end.value - began) / static_cast<double>(fastest.value);
    return moved + Bytes(static_cast<int64_t>(share * static_cast<double>(chunk.value)));
  }
  return moved;
}

}  // namespace

BytesPerSecond RateOf(const CopyFigure& figure) {
  if (figure.time.value <= 0) return BytesPerSecond(0);
  return BytesPerSecond(static_cast<int64_t>(static_cast<double>(figure.bytes.value) * 1e9 /
                                             static_cast<double>(figure.time.value)));
}

std::vector<CopyFigure> FiguresOf(const std::vector<ChunkTimes>& times, Bytes chunk) {
  Nanos end(std::numeric_limits<int64_t>::max());
  for (const ChunkTimes& path : times) {
    SIPHON_CHECK(!path.empty(), "a path has chunks");
    end = std::min(end, path.back());
  }
  std::vector<CopyFigure> figures;
  figures.reserve(times.size());
  for (const ChunkTimes& path : times) figures.push_back({MovedUntil(end, path, chunk), end});
  return figures;
}

std::vector<CopyFigure> MedianFigures(const std::vector<std::vector<CopyFigure>>& rounds) {
  SIPHON_CHECK(!rounds.empty(), "there are rounds");
  std::vector<CopyFigure> medians;
  for (size_t path = 0; path < rounds[0].size(); ++path) {
    std::vector<CopyFigure> figures;
    for (const std::vector<CopyFigure>& round : rounds) figures.push_back(round[path]);
    std::sort(figures.begin(), figures.end(),
              [](const CopyFigure& a, const CopyFigure& b) { return RateOf(a) < RateOf(b); });
    medians.push_back(figures[figures.size() / 2]);
  }
  return medians;
}

}  // namespace siphon
