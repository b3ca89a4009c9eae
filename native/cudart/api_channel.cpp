// The description of array elements, which needs no device.
#include "cudart/entry.h"

namespace weft::cudart::api {

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}

}  // namespace weft::cudart::api
