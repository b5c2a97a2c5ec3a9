/* Numbers with as many digits as their measurement supports. */
#ifndef MOESOL_REPORTS_DIGITS_H
#define MOESOL_REPORTS_DIGITS_H

#include "table.h"

/* Digits after the point that an uncertainty leaves: its first digit stands last, or its second
 * one where the first is a 1 or a 2. 3 where it is not known; at most 4. */
int digits_of(double uncertainty);

/* `value` to the digits of its uncertainty (half of the 95 % interval). */
struct cell_text measured_text(double value, double uncertainty);
/* The uncertainty itself, to the same digits. */
struct cell_text uncertainty_text(double uncertainty);

#endif
