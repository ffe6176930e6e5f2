#include "launch/checkpoint/checkpoint.h"
