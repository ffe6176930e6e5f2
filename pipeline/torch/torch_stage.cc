#include "pipeline/torch/torch_stage.h"
