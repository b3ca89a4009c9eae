// The interface of the runtime's major that this library is built as. One set of sources makes libcudart.so.12 and .13.
#pragma once

#include "gen/cuda_abi.h"

#if WEFT_CUDART_MAJOR == 12
#include "gen/cudart_api_12.h"
#elif WEFT_CUDART_MAJOR == 13
#include "gen/cudart_api_13.h"
#else
#error "WEFT_CUDART_MAJOR must be 12 or 13"
#endif
