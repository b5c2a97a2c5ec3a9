/* Checks a launch's stamps and joins those of tiles that follow each other, so that a record keeps
 * some dozens a multiprocessor and not one a tile. */
#include "stamps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The launch as a whole. */
struct launch {
    uint64_t begin_ns, end_ns, step_ns;
    size_t phase_count;
};

static const struct moe_stamp *first_of(const struct stamps *stamps, size_t block) {
    return stamps->rows + block * stamps->per_block;
}

/* Stamps that the block has written. */
static size_t count_of(const struct stamps *stamps, size_t block) {
    const struct moe_stamp *rows = first_of(stamps, block);
    size_t count = 0;
    while (count < stamps->per_block && rows[count].end_ns)
        count++;
    return count;
}

static const char *block_wrong(const struct stamps *stamps, size_t block, size_t phase_count) {
    const struct moe_stamp *rows = first_of(stamps, block);
    size_t count = count_of(stamps, block);
    uint64_t before_ns = 0;
    if (count == 0)
        return "a block of the instrumented launch has left no stamp";
    if (count == stamps->per_block)
        return "a block of the instrumented launch had no room for all of its stamps";
    for (size_t i = 0; i < count; i++) {
        if (rows[i].phase >= phase_count)
            return "a stamp is of an unknown phase";
        if (rows[i].end_ns < rows[i].start_ns || rows[i].start_ns < before_ns ||
            rows[i].waited_ns > rows[i].end_ns - rows[i].start_ns)
            return "a block's stamps are not in order of time";
        before_ns = rows[i].end_ns;
    }
    return NULL;
}

/* The clock's step is the least difference that is seen; 0 where no two times differ. */
static void note_step(uint64_t ns, struct launch *launch) {
    if (ns && (!launch->step_ns || ns < launch->step_ns))
        launch->step_ns = ns;
}

/* Returns NULL, or why the stamps are of no use. */
static const char *measure(const struct stamps *stamps, struct launch *launch) {
    const char *wrong;
    memset(launch, 0, sizeof *launch);
    while (stamps->phases[launch->phase_count])
        launch->phase_count++;
    if (!stamps->blocks)
        return "the instrumented launch has no blocks";
    for (size_t b = 0; b < stamps->blocks; b++) {
        if ((wrong = block_wrong(stamps, b, launch->phase_count)))
            return wrong;
        const struct moe_stamp *rows = first_of(stamps, b);
        size_t count = count_of(stamps, b);
        if (b == 0 || rows[0].start_ns < launch->begin_ns)
            launch->begin_ns = rows[0].start_ns;
        if (rows[count - 1].end_ns > launch->end_ns)
            launch->end_ns = rows[count - 1].end_ns;
        for (size_t i = 0; i < count; i++)
            note_step(rows[i].end_ns - rows[i].start_ns, launch);
    }
    for (size_t b = 1; b < stamps->blocks; b++) {
        uint64_t one = first_of(stamps, b)->start_ns, other = first_of(stamps, b - 1)->start_ns;
        note_step(one > other ? one - other : other - one, launch);
    }
    return NULL;
}

static int make_room(const struct stamps *stamps, size_t phase_count,
                     struct record_timeline *timeline) {
    size_t room = 1;
    for (size_t b = 0; b < stamps->blocks; b++)
        room += count_of(stamps, b);
    timeline->stamp_phases = calloc(phase_count + 1, sizeof *timeline->stamp_phases);
    timeline->stamp_sms = calloc(room, sizeof(double));
    timeline->stamp_indices = calloc(room, sizeof(double));
    timeline->stamp_tiles = calloc(room, sizeof(double));
    timeline->stamp_start_ns = calloc(room, sizeof(double));
    timeline->stamp_ns = calloc(room, sizeof(double));
    timeline->stamp_waited_ns = calloc(room, sizeof(double));
    timeline->stamp_inputs_ns = calloc(room, sizeof(double));
    return timeline->stamp_phases && timeline->stamp_sms && timeline->stamp_indices &&
                   timeline->stamp_tiles && timeline->stamp_start_ns && timeline->stamp_ns &&
                   timeline->stamp_waited_ns && timeline->stamp_inputs_ns
               ? 0
               : -1;
}

/* Whether the stamp goes on where the timeline's last one ended, and that one is still short. */
static bool joins(const struct record_timeline *timeline, const struct moe_stamp *stamp,
                  const struct launch *launch) {
    size_t last = timeline->stamp_count - 1;
    double least_ns = (double)(launch->end_ns - launch->begin_ns) / STAMP_PARTS;
    return timeline->stamp_indices[last] == stamp->phase &&
           timeline->stamp_sms[last] == stamp->sm && timeline->stamp_ns[last] < least_ns;
}

static void add(struct record_timeline *timeline, const struct moe_stamp *stamp, bool first,
                const struct launch *launch) {
    double start_ns = (double)(stamp->start_ns - launch->begin_ns);
    size_t i = timeline->stamp_count;
    if (!first && joins(timeline, stamp, launch)) {
        i--;
    } else {
        timeline->stamp_count++;
        timeline->stamp_sms[i] = stamp->sm;
        timeline->stamp_indices[i] = stamp->phase;
        timeline->stamp_start_ns[i] = start_ns;
    }
    timeline->stamp_tiles[i]++;
    timeline->stamp_ns[i] =
        (double)(stamp->end_ns - launch->begin_ns) - timeline->stamp_start_ns[i];
    timeline->stamp_waited_ns[i] += stamp->waited_ns;
    timeline->stamp_inputs_ns[i] += stamp->inputs_ns;
}

int stamps_fill(const struct stamps *stamps, struct record_timeline *timeline, struct error *err) {
    struct launch launch;
    const char *wrong = measure(stamps, &launch);
    if (wrong) {
        snprintf(timeline->stamp_reason, sizeof timeline->stamp_reason, "%s", wrong);
        return 0;
    }
    if (make_room(stamps, launch.phase_count, timeline))
        return error_set(err, EXIT_FAILED, "out of memory: the stamps of a launch");
    timeline->stamp_phase_count = launch.phase_count;
    for (size_t p = 0; p < launch.phase_count; p++)
        strncpy(timeline->stamp_phases[p].name, stamps->phases[p],
                sizeof timeline->stamp_phases[p].name - 1);
    for (size_t b = 0; b < stamps->blocks; b++)
        for (size_t i = 0; i < count_of(stamps, b); i++)
            add(timeline, first_of(stamps, b) + i, i == 0, &launch);
    timeline->stamp_step_ns = (double)launch.step_ns;
    timeline->stamp_sms_count = timeline->stamp_indices_count = timeline->stamp_count;
    timeline->stamp_tiles_count = timeline->stamp_ns_count = timeline->stamp_count;
    timeline->stamp_waited_count = timeline->stamp_inputs_count = timeline->stamp_count;
    return 0;
}
