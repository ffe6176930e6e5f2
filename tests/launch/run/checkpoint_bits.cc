#include "tests/launch/run/checkpoint_bits.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>

#include "launch/checkpoint/safetensors.h"

namespace siphon {

std::map<std::string, std::string> CheckpointBits(const std::string& checkpoint) {
  std::map<std::string, std::string> bits;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto file = SafetensorsFile::Open(entry.path());
    EXPECT_TRUE(file.ok()) << file.status();
    for (size_t i = 0; i < file->tensors().size(); ++i) {
      const StoredTensor& tensor = file->tensors()[i];
      std::string bytes(tensor.size, '\0');
      const absl::Span<std::byte> destination(reinterpret_cast<std::byte*>(bytes.data()),
                                              bytes.size());
      EXPECT_TRUE(file->Read(static_cast<int>(i), destination).ok());
      EXPECT_TRUE(bits.emplace(tensor.name, bytes).second) << tensor.name << " is there twice";
    }
  }
  return bits;
}

}  // namespace siphon
