#include "launch/data/batches.h"
