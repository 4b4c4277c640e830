/* Tensors of one launch of a graph of rows (tests/support/backward_reference.h) in a device's memory, up to gigabytes
 * of them, and what came of it against the reference.
 *
 * Inputs repeat the rows of a bank, so that a reference of few rows is one of all: a row's outputs must have the bits
 * of the first row that is like it. Behind each input lies one row more of poison, on both sides of all a border;
 * outputs and workspace hold NaNs before a launch. */
#ifndef TESTS_BACKWARD_DATA_H
#define TESTS_BACKWARD_DATA_H

#include "tests/support/backward_reference.h"
#include "tests/support/device_case.h"

/* What a tensor is by its name: what is divided by, taken away or added, shares that sum to about 1, any other. */
typedef enum Role { ROLE_DEVIATION, ROLE_CENTRE, ROLE_SHARE, ROLE_ANY } Role;
/* A number of a tensor, from random bits; it is rounded to the tensor's dtype. */
typedef double (*Fill)(Role role, uint64_t bits, Geometry at);
double fill_random(Role role, uint64_t bits, Geometry at);
/* Multiples of powers of two, of which sums are exact in f32. */
double fill_grid(Role role, uint64_t bits, Geometry at);
double fill_ones(Role role, uint64_t bits, Geometry at);

typedef struct DataLayout {
    Random *shift; /* NULL: every tensor at a 256-byte boundary; else each some elements behind one */
    bool large;    /* poison is large numbers, not NaN */
    bool in_place; /* outputs in the memory of their inplace inputs: one launch an upload */
} DataLayout;

typedef struct DataTensor {
    const char *name;
    DType dtype;
    size_t each; /* bytes an element */
    bool input, held;
    OutKind kind;          /* elements of rows, a number a row, or of columns */
    int64_t rows, columns; /* as a matrix */
    int64_t stride;        /* elements from a row to the next */
    int64_t bank_rows;
    double *bank;        /* rows of columns: of inputs, and what an output holds before */
    uint32_t owner;      /* in whose block it lies: itself, or the input that it replaces */
    char *block;         /* on this machine; owners only, as what follows */
    size_t bytes, start; /* of the block, and of the first element in it */
    void *memory;        /* on the device */
} DataTensor;

typedef struct Data {
    Job *job;
    const Backward *of;
    const RtProgram *program; /* whose tensors these are; others may have the same */
    Geometry at;
    const int64_t *any;
    uint32_t tensor_count, input_count;
    DataTensor *tensors;
    Reference reference;
    RtDevice *device;
    size_t border;
    /* compared so far: with the first of their like too, with the reference, with one that allows no error */
    uint64_t elements, referred, exact;
} Data;

/* any lives as long as the data; false where the program refuses it, with words in why. */
bool data_open(Data *data, const Backward *of, const DeviceCase *made, Geometry at, const int64_t *any, Fill fill,
               uint64_t seed, Text *why);
void data_close(Data *data);
/* Of the program's sums at these sizes; 0: not known. */
double data_depth(const Data *data, const DeviceCase *made);
void data_refer(Data *data, Accuracy accuracy);

bool data_upload(Data *data, RtDevice *device, const DataLayout *layout, Text *why);
/* Launches a program, which is loaded on the device, and brings back what it wrote. */
bool data_launch(Data *data, const DeviceCase *made, Text *why);
/* Elements that are wrong, the first of them printed with the graph, M, N, where they are, and what was expected. */
uint64_t data_compare(Data *data, const DeviceCase *made);
/* An output's elements as they lie in its block, pads and all. */
const char *data_output(const Data *data, uint32_t output, size_t *bytes);

#endif
