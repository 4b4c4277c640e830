/* Where tmp and ws bufs lie in the caller's workspace. One description, in the Plan, that the library evaluates here
 * and the emitted launcher as C: rooms in order, each as large as the largest of the bufs that take it in turn. */
#ifndef GEN_WORKSPACE_H
#define GEN_WORKSPACE_H

#include "gen/gen.h"

#define GEN_WORKSPACE_ALIGN 256 /* bytes: of the workspace and of each room */

/* Fills the plan's rooms from its steps. Bufs share a room where the last step that reads one comes before the first
 * that writes the other; which do is settled by the order of the steps alone, never by sizes known at launch, so that
 * the bytes needed never grow when a dim shrinks. */
void gen_plan_workspace(Job *job, Unit *unit);

/* The part counts of a launch on so many SMs; false past 2^62. most: the most that they are for these dims or any
 * smaller ones, which is what the workspace is made for. */
bool gen_eval_parts(const Plan *plan, uint32_t part_count, const int64_t *dims, uint32_t dim_count, int sms, bool most,
                    int64_t *parts);
/* The place of each room in bytes, and of the end: room_count + 1 numbers; false past 2^62. parts: the most. */
bool gen_eval_rooms(const Plan *plan, const int64_t *dims, uint32_t dim_count, const int64_t *parts,
                    uint32_t part_count, int sms, int64_t *places);

#endif
