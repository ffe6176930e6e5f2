#include "launch/data/dataset.h"
