#ifndef ERROR_H
#define ERROR_H

struct error_row {
	int code;
	const char *name, *text;
};
extern const struct error_row error_rows[]; /* sorted by code */
extern const unsigned int error_row_count;

#endif
