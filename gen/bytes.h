/* Bytes that kernels move, as polynomials and as numbers by the dims' hints. */
#ifndef GEN_BYTES_H
#define GEN_BYTES_H

#include "gen/gen.h"

/* The any dims by hint, else max, else 1024: for what is estimated, never for what must hold. */
int64_t *gen_guess_dims(Job *job, const Prog *prog);
/* What a size is a multiple of by its numbers and the dims' promises; of 0 it is 0. */
int64_t gen_size_factor(Job *job, const Prog *prog, Size size);
/* Elements that run over these axes of a nest. */
Poly gen_axes_elements(Job *job, const Prog *prog, const Nest *nest, uint32_t axes);
/* What an access touches, each element once, but those that an index picks as often as it does; nothing of a scalar.
 */
Poly gen_access_bytes(Job *job, const Prog *prog, const Nest *nest, const Access *access);
/* What a step must move at least: each element of each tensor once. */
Poly gen_step_bytes(Job *job, const Unit *unit, const Step *step);
/* What later phases of a step load once more, which moves bytes unless the L2 still has it: where what the CTAs touch
 * that run at once, by the guess, is no more than it holds. */
typedef struct Again {
    Poly bytes;      /* no terms: each element is loaded once */
    int64_t at_once; /* bytes that the CTAs touch that run at once */
    bool counted;    /* at_once passes the L2 */
} Again;
Again gen_step_again(Job *job, const Unit *unit, const Step *step);
/* gen_step_bytes, and what is loaded again where that counts. */
Poly gen_step_moved(Job *job, const Unit *unit, const Step *step);
/* What any plan must move: each input read once, each output written once; what is added to is read too. */
Poly gen_ideal_bytes(Job *job, const Unit *unit);
/* What this one does: gen_step_moved of all steps. */
Poly gen_moved_bytes(Job *job, const Unit *unit);

/* The number by the guess; one that passes 2^62 is 2^62. */
int64_t gen_bytes_guess(Job *job, const Unit *unit, Poly bytes);
bool gen_poly_has(Poly poly, uint32_t symbol);
/* "ceil(B*ceil(F / 4) / 256) * P0" */
const char *gen_grid_text(Job *job, const Prog *prog, const Step *step);
const char *gen_poly_text(Job *job, const Prog *prog, Poly poly);
/* "M=1024, N=512": the guess; "" where nothing is any. */
const char *gen_guess_text(Job *job, const Prog *prog);
/* "12*M*N = 9437184 with M=1024, N=768", the dims and part counts that are in it; "M = 1024"; "4096" */
const char *gen_bytes_text(Job *job, const Unit *unit, Poly bytes);

#endif
