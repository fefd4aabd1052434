/* What the C library makes of formats and values: gcc -o p printf.c && ./p >printf.txt
 * Columns, between tabs: bytes of the argument, format, value in hexadecimal, text. */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *const ints[] = {"%d", "%i", "%5d", "%-5d|", "%05d", "%+d", "% d", "%.3d", "%8.3d", "%-8.3d|", "%08.3d", "%.0d", "%u", "%o", "%#o",
	"%x", "%X", "%#x", "%#X", "%#08x", "%hhd", "%hd", "%hhu", "%hu", "%hhx", "%.5x", "%#.5o", "%-+7d|"};
static const int32_t int_values[] = {0, 1, -1, 42, -42, 255, INT32_MAX, INT32_MIN, 65535};
static const char *const longs[] = {"%ld", "%lld", "%lu", "%llx", "%#lo", "%20ld", "%-20lld|", "%+.15ld", "%p", "%20p", "%-20p|"};
static const int64_t long_values[] = {0, 1, -1, 1ll << 40, INT64_MIN, INT64_MAX, 0x400000000000};
static const char *const floats[] = {"%f", "%.0f", "%#.0f", "%10.3f", "%-10.3f|", "%010.3f", "%+f", "% f", "%e", "%.0e", "%#.0e", "%E", "%12.4e", "%g", "%#g",
	"%.0g", "%.10g", "%G", "%.3g", "%a", "%A", "%.2a", "%15a", "%015a", "%F", "%5.1f"};

int main(void)
{
	const double float_values[] = {0, -0.0, 1, -1.5, 3.14159265358979, 100000, 999999.4, 1e6, 123456789, 1e-4, 1.5e-5, 1e300, INFINITY, -INFINITY, NAN,
		0.5, 2.5, 1e15, 12345.678};

#define ALL(formats, values, bits, bytes)                                                                              \
	for (size_t f = 0; f < COUNT(formats); f++)                                                                    \
		for (size_t v = 0; v < COUNT(values); v++) {                                                           \
			bits u;                                                                                        \
			memcpy(&u, &(values)[v], sizeof u);                                                            \
			printf("%d\t%s\t%" PRIx64 "\t", bytes, (formats)[f], (uint64_t)u);                             \
			printf((formats)[f], (values)[v]);                                                             \
			puts("");                                                                                      \
		}
	ALL(ints, int_values, uint32_t, 4)
	ALL(longs, long_values, uint64_t, 8)
	ALL(floats, float_values, uint64_t, 8)
	return 0;
}
