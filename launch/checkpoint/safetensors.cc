#include "launch/checkpoint/safetensors.h"
