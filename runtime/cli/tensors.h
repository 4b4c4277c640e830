/* The tensors of one run: host memory in the strides of the file, filled from safetensors files or at random. */
#ifndef CLI_TENSORS_H
#define CLI_TENSORS_H

#include "runtime/cli/cli.h"
#include "runtime/cli/safetensors.h"

#define CLI_MAX_RANK 6
#define CLI_RANDOM_PERIOD                                                                                              \
    16777259 /* elements, the first prime above 2^24: rows of a power of two never repeat in step */

typedef struct Tensor {
    ng_arg arg;
    int64_t extent[CLI_MAX_RANK], stride[CLI_MAX_RANK];
    uint64_t elements;
    int64_t indices;      /* of an input that is random: its elements are 0 to indices - 1; 0: they index nothing */
    void *memory;         /* what is freed; NULL where another tensor's memory is used */
    unsigned char *first; /* element [0, ..., 0] */
    const char *file;     /* an input from a file: its path, else NULL */
    const StFile *source; /* the file, and */
    const StTensor *from; /* the tensor in it */
} Tensor;

/* Extents, strides and memory for these any dims, the pointer `misalign` elements past a 256-byte boundary, every byte
 * set to 0xff: NaN in every float dtype. advice: added to the words of exit 6 where memory is short. */
void cli_tensor_make(Cli *cli, const Opened *opened, ng_arg_role role, uint32_t index, const int64_t *dims,
                     int64_t misalign, const char *advice, Tensor *tensor);
void cli_tensor_random(Tensor *tensor, uint64_t seed); /* tensor->indices is read */
/* Of tensor->from; a dtype or shape that differs is exit 2, as are elements that share memory and differ. */
void cli_tensor_copy_in(Cli *cli, Tensor *tensor);
/* The elements in row-major order without gaps: tensor->first itself where it is so, else *owned, to be freed. */
const unsigned char *cli_tensor_dense(const Tensor *tensor, unsigned char **owned);
void cli_put_shape(Buf *buf, ng_dtype dtype, int rank, const int64_t *extent); /* bf16[3, 768] */
void cli_put_element(Buf *buf, ng_dtype dtype,
                     const unsigned char *element); /* reads back; fp8 exact, bools True and False */

#endif
