/* How many digits a measurement supports. */
#include "digits.h"

#include <math.h>

#define DIGITS_MOST 4
#define DIGITS_UNKNOWN 3

int digits_of(double uncertainty) {
    if (!(uncertainty > 0) || isinf(uncertainty))
        return DIGITS_UNKNOWN;
    int power = (int)floor(log10(uncertainty));
    int digits = -power + (uncertainty / pow(10, power) < 2.95);
    if (digits < 0)
        return 0;
    return digits > DIGITS_MOST ? DIGITS_MOST : digits;
}

struct cell_text measured_text(double value, double uncertainty) {
    return number_text(value, digits_of(uncertainty));
}

struct cell_text uncertainty_text(double uncertainty) {
    return number_text(uncertainty, digits_of(uncertainty));
}
