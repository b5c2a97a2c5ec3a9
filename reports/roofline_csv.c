/* The points of a roofline picture as CSV: what is drawn, what is outside the frame, and the phases
 * without FLOP. Empty fields are not known. */
#include <math.h>
#include <stdint.h>

#include "csv.h"
#include "escape.h"
#include "roofline_picture.h"

static void write_point(FILE *file, const struct roofline_picture *picture, size_t i) {
    const struct roofline_point *point = &picture->roofline->points[i];
    const struct record_run *run = &picture->summaries[point->record].record->run;
    size_t group = picture->layout.group_of[i];

    escape_csv(file, run->kernel.name);
    csv_text(file, run->device.name);
    csv_text(file, point->name);
    csv_number(file, point->case_number > 0 ? point->case_number : NAN);
    csv_number(file, point->batch_seq_len);
    fprintf(file, ",%zu", point->case_count);
    csv_number(file, point->work.flop);
    csv_number(file, point->work.bytes);
    csv_number(file, point->latency_ns / 1e6);
    csv_number(file, point->intensity);
    csv_number(file, point->flop_per_s);
    csv_number(file, point->bytes_per_s);
    csv_number(file, point->fraction);
    csv_number(file, group == SIZE_MAX ? NAN : (double)(group + 1));
    fputc('\n', file);
}

void roofline_write_csv(FILE *file, const struct roofline_picture *picture) {
    fputs("kernel,device,point,case,batch_seq_len,cases,flop,bytes,latency_ms,flop_per_byte,"
          "flop_per_s,bytes_per_s,fraction_of_measured_bound,label\n",
          file);
    for (size_t i = 0; i < picture->roofline->point_count; i++)
        write_point(file, picture, i);
}
