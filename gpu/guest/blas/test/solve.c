/* Tests triangular systems and factorizations by inserting the solutions. The error of each
 * equation of a substitution is bounded by the sizes of its terms, and the product of the factors
 * of a factorization is compared with the matrix. */
#include "test.h"

enum { BATCH = 3 };

/* BATCH matrices of rows × columns, with NaNs between columns. */
struct matrices {
	cudaDataType type;
	int rows, columns, ld;
	size_t size; /* bytes of one matrix */
	char *host;
	void *device, *pointers;
};

static struct matrices matrices_of(cudaDataType type, int slot, int rows, int columns)
{
	struct matrices m = {type, rows, columns, rows + 2, (size_t)(rows + 2) * (size_t)most(columns, 1) * type_size(type), NULL, NULL, NULL};
	void *list[BATCH];

	m.host = malloc(m.size * BATCH);
	ASSERT(m.host);
	fill_nan(type, m.host, m.size * BATCH / type_size(type));
	for (int j = 0; j < columns * BATCH; j++)
		fill_random(type, m.host + (size_t)(j * m.ld) * type_size(type), (size_t)rows);
	m.device = (void *)(uintptr_t)device_memory(slot, m.size * BATCH);
	for (int z = 0; z < BATCH; z++)
		list[z] = (char *)m.device + (size_t)z * m.size;
	m.pointers = on_device(slot + 1, list, sizeof list);
	return m;
}

static void send(const struct matrices *m)
{
	to_device((CUdeviceptr)(uintptr_t)m->device, m->host, m->size * BATCH);
}

static struct matrices receive(const struct matrices *m)
{
	struct matrices got = *m;

	got.host = malloc(m->size * BATCH);
	ASSERT(got.host);
	from_device(got.host, (CUdeviceptr)(uintptr_t)m->device, m->size * BATCH);
	return got;
}

static size_t at(const struct matrices *m, int z, int i, int j)
{
	return (size_t)z * m->size / type_size(m->type) + (size_t)i + (size_t)j * (size_t)m->ld;
}

static value element(const struct matrices *m, int z, int i, int j)
{
	return get(m->type, m->host, at(m, z, i, j));
}

static void set(const struct matrices *m, int z, int i, int j, value v)
{
	put(m->type, m->host, at(m, z, i, j), v);
}

/* The sum of terms that should be 0, and the sum of their sizes. */
struct balance {
	value sum;
	long double sizes;
};

static void add(struct balance *b, value v)
{
	b->sum += v;
	b->sizes += size_of(v);
}

static void check_balance(const char *what, const struct matrices *m, int i, int j, const struct balance *b, int terms)
{
	near_value(what, i, j, b->sum, 0, type_unit(m->type) * (terms + 4) * (type_complex(m->type) ? 4 : 1) * b->sizes);
}

struct side {
	cublasSideMode_t side;
	cublasFillMode_t uplo;
	cublasOperation_t op;
	cublasDiagType_t diag;
};

/* Returns the element of op(A) that the call uses. */
static value triangle(const struct matrices *a, int z, const struct side *s, int i, int j)
{
	int row = s->op == CUBLAS_OP_N ? i : j, column = s->op == CUBLAS_OP_N ? j : i;
	value v;

	if (row == column && s->diag == CUBLAS_DIAG_UNIT)
		return 1;
	if (s->uplo == CUBLAS_FILL_MODE_LOWER ? row < column : row > column)
		return 0;
	v = element(a, z, row, column);
	return s->op == CUBLAS_OP_C ? conjl(v) : v;
}

/* Creates triangular matrices. Elements that must not be read are NaN. The diagonal is larger than
 * the rest, so that solutions do not grow. */
static void make_triangle(struct matrices *a, const struct side *s)
{
	for (int z = 0; z < BATCH; z++)
		for (int j = 0; j < a->columns; j++)
			for (int i = 0; i < a->rows; i++)
				if (i == j)
					set(a, z, i, j, s->diag == CUBLAS_DIAG_UNIT ? NAN : 2 + element(a, z, i, j));
				else if (s->uplo == CUBLAS_FILL_MODE_LOWER ? i < j : i > j)
					set(a, z, i, j, NAN);
				else
					set(a, z, i, j, element(a, z, i, j) / 8);
}

static void check_solution(const struct matrices *a, const struct matrices *b, const struct matrices *x, const struct side *s, value alpha, int batch)
{
	bool left = s->side == CUBLAS_SIDE_LEFT;

	for (int z = 0; z < batch; z++)
		for (int j = 0; j < b->columns; j++)
			for (int i = 0; i < b->rows; i++) {
				struct balance e = {0};

				for (int l = 0; l < a->rows; l++) {
					value t = left ? triangle(a, z, s, i, l) : triangle(a, z, s, l, j);

					if (t != 0)
						add(&e, t * (left ? element(x, z, l, j) : element(x, z, i, l)));
				}
				if (alpha != 0)
					add(&e, -alpha * element(b, z, i, j));
				check_balance("trsm", b, i, j, &e, a->rows);
			}
}

static void trsm(cudaDataType type, struct side s, int m, int n, value alpha, bool batched)
{
	int order = s.side == CUBLAS_SIDE_LEFT ? m : n;
	struct matrices a = matrices_of(type, 0, order, order), b = matrices_of(type, 2, m, n), x;
	char factor[16];

	put(type, factor, 0, alpha);
	make_triangle(&a, &s);
	send(&a);
	send(&b);
	if (batched)
		OK(CALL(type, trsmBatched, s.side, s.uplo, s.op, s.diag, m, n, (void *)factor, a.pointers, a.ld, b.pointers, b.ld, BATCH));
	else
		OK(CALL(type, trsm, s.side, s.uplo, s.op, s.diag, m, n, (void *)factor, a.device, a.ld, b.device, b.ld));
	x = receive(&b);
	check_solution(&a, &b, &x, &s, alpha, batched ? BATCH : 1);
	free(a.host);
	free(b.host);
	free(x.host);
}

void test_trsm(void)
{
	static const int sizes[][2] = {{1, 1}, {5, 7}, {33, 4}, {40, 70}};
	float one = 1, *p = (float *)(uintptr_t)device_memory(0, 4096);
	cublasHandle_t h = handle();

	for (int t = 0; t < 4; t++)
		for (int bits = 0; bits < 24; bits++) {
			struct side s = {(cublasSideMode_t)(bits & 1), (cublasFillMode_t)(bits >> 1 & 1), (cublasOperation_t)(bits >> 3),
				(cublasDiagType_t)(bits >> 2 & 1)};
			value other = type_complex(letter_types[t]) ? 0.75L - 1.25L * I : -1.25L;
			int size = (bits + bits / 4) % 4, large = bits % 8 == 3 || bits % 8 == 0 ? 3 : size % 3;

			trsm(letter_types[t], s, sizes[large][0], sizes[large][1], bits % 7 == 0 ? 0 : bits % 2 ? other : 1, (bits + t) % 2);
		}
#define STRSM(side, uplo, op, diag, m, n, alpha, lda, ldb) \
	cublasStrsm(h, (cublasSideMode_t)(side), (cublasFillMode_t)(uplo), (cublasOperation_t)(op), (cublasDiagType_t)(diag), m, n, alpha, p, lda, p, ldb)
	WANT(STRSM(2, 0, 0, 0, 2, 2, &one, 2, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(STRSM(0, 2, 0, 0, 2, 2, &one, 2, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(STRSM(0, 0, 3, 0, 2, 2, &one, 2, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(STRSM(0, 0, 0, 2, 2, 2, &one, 2, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(STRSM(0, 0, 0, 0, -1, 2, &one, 2, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(STRSM(0, 0, 0, 0, 3, 2, &one, 2, 3), CUBLAS_STATUS_INVALID_VALUE);
	WANT(STRSM(1, 0, 0, 0, 2, 3, &one, 2, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(STRSM(0, 0, 0, 0, 3, 2, &one, 3, 2), CUBLAS_STATUS_INVALID_VALUE);
	WANT(STRSM(0, 0, 0, 0, 2, 2, NULL, 2, 2), CUBLAS_STATUS_INVALID_VALUE);
	OK(STRSM(0, 0, 0, 0, 0, 2, &one, 1, 1));
#undef STRSM
}

/* Returns an element of L or U of a factorization. */
static value factor_of(const struct matrices *lu, int z, bool lower, int i, int j)
{
	if (lower)
		return i == j ? 1 : i > j ? element(lu, z, i, j) : 0;
	return i <= j ? element(lu, z, i, j) : 0;
}

/* Computes the order of A's rows after the exchanges by pivots. */
static void order_rows(const int *pivots, int n, int *rows)
{
	for (int i = 0; i < n; i++)
		rows[i] = i;
	for (int i = 0; i < n && pivots; i++) {
		int p = pivots[i] - 1, row = rows[i];

		ASSERT(p >= i && p < n);
		rows[i] = rows[p];
		rows[p] = row;
	}
}

static void check_lu(const struct matrices *a, const struct matrices *lu, const int *pivots)
{
	int n = a->rows, rows[128];

	for (int z = 0; z < BATCH; z++) {
		order_rows(pivots ? pivots + z * n : NULL, n, rows);
		for (int j = 0; j < n; j++)
			for (int i = 0; i < n; i++) {
				struct balance e = {0};

				for (int l = 0; l <= i && l <= j; l++)
					add(&e, factor_of(lu, z, true, i, l) * factor_of(lu, z, false, l, j));
				add(&e, -element(a, z, rows[i], j));
				check_balance("getrf", a, i, j, &e, n);
				if (pivots && i > j && size_of(element(lu, z, i, j)) > (type_complex(a->type) ? 2.01L : 1.01L))
					FAIL("element (%d, %d) of L is too large, want at most what pivoting gives", i, j);
			}
	}
}

/* Checks op(A) X = B. The error bound of each column is a few times the order, times the sizes of
 * the factors. */
static void check_lu_solution(const struct matrices *a, const struct matrices *b, const struct matrices *x, cublasOperation_t op)
{
	for (int z = 0; z < BATCH; z++)
		for (int j = 0; j < b->columns; j++) {
			struct balance whole = {0};

			for (int pass = 0; pass < 2; pass++)
				for (int i = 0; i < b->rows; i++) {
					struct balance e = {0};

					for (int l = 0; l < a->rows; l++) {
						value v = op == CUBLAS_OP_N ? element(a, z, i, l) : element(a, z, l, i);

						add(&e, (op == CUBLAS_OP_C ? conjl(v) : v) * element(x, z, l, j));
					}
					add(&e, -element(b, z, i, j));
					whole.sizes += pass ? 0 : e.sizes; /* the sizes of all equations, because substitution combines them */
					if (pass)
						check_balance("getrs", b, i, j, &(struct balance){e.sum, whole.sizes}, a->rows);
				}
		}
}

static void lu(cudaDataType type, int n, int columns, bool pivoted, cublasOperation_t op)
{
	struct matrices a = matrices_of(type, 0, n, n), b = matrices_of(type, 2, n, columns), factors, x;
	int pivots[BATCH * 128] = {0}, info[BATCH] = {-1, -1, -1}, host_info = -1;
	int *device_pivots = on_device(4, pivots, sizeof pivots), *device_info = on_device(5, info, sizeof info);

	for (int z = 0; z < BATCH && !pivoted; z++)
		for (int i = 0; i < n; i++)
			set(&a, z, i, i, element(&a, z, i, i) + n);
	send(&a);
	send(&b);
	OK(CALL(type, getrfBatched, n, a.pointers, a.ld, pivoted ? device_pivots : NULL, device_info, BATCH));
	factors = receive(&a);
	from_device(info, (CUdeviceptr)(uintptr_t)device_info, sizeof info);
	from_device(pivots, (CUdeviceptr)(uintptr_t)device_pivots, sizeof pivots);
	ASSERT(info[0] == 0 && info[1] == 0 && info[2] == 0);
	check_lu(&a, &factors, pivoted ? pivots : NULL);
	OK(CALL(type, getrsBatched, op, n, columns, a.pointers, a.ld, pivoted ? device_pivots : NULL, b.pointers, b.ld, &host_info, BATCH));
	ASSERT(host_info == 0);
	x = receive(&b);
	check_lu_solution(&a, &b, &x, op);
	free(a.host);
	free(b.host);
	free(factors.host);
	free(x.host);
}

/* A singular matrix: info is the number of the first pivot that is 0, counted from 1. */
static void lu_singular(void)
{
	struct matrices a = matrices_of(CUDA_R_32F, 0, 4, 4);
	int info[BATCH] = {-1, -1, -1}, *device_info = on_device(5, info, sizeof info);
	void *pivots = (void *)(uintptr_t)device_memory(4, BATCH * 4 * sizeof(int));

	for (int i = 0; i < 4; i++)
		set(&a, 1, i, 2, 0);
	send(&a);
	OK(cublasSgetrfBatched(handle(), 4, a.pointers, a.ld, pivots, device_info, BATCH));
	from_device(info, (CUdeviceptr)(uintptr_t)device_info, sizeof info);
	ASSERT(info[0] == 0 && info[1] == 3 && info[2] == 0);
	WANT(cublasSgetrfBatched(handle(), 4, a.pointers, 3, NULL, device_info, BATCH), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasSgetrfBatched(handle(), -1, a.pointers, 4, NULL, device_info, BATCH), CUBLAS_STATUS_INVALID_VALUE);
	WANT(cublasSgetrfBatched(handle(), 50000, a.pointers, 50000, NULL, device_info, BATCH), CUBLAS_STATUS_NOT_SUPPORTED);
	WANT(cublasSgetrsBatched(handle(), CUBLAS_OP_N, 4, 1, a.pointers, 3, NULL, a.pointers, 4, info, BATCH), CUBLAS_STATUS_INVALID_VALUE);
	ASSERT(info[0] == -5);
	free(a.host);
}

void test_lu(void)
{
	static const int orders[] = {1, 6, 35, 70};

	for (int t = 0; t < 4; t++)
		for (int s = 0; s < 4; s++)
			lu(letter_types[t], orders[s], 1 + 4 * (s % 2), (s + t) % 3 != 2, (cublasOperation_t)((s + t) % 3));
	lu_singular();
}

/* Computes Q^H times a column, by the reflectors in the order of geqrf. */
static void reflect(const struct matrices *qr, const struct matrices *tau, int z, value *column)
{
	for (int j = 0; j < qr->columns && j < qr->rows; j++) {
		value sum = column[j];

		for (int i = j + 1; i < qr->rows; i++)
			sum += conjl(element(qr, z, i, j)) * column[i];
		sum *= conjl(element(tau, z, j, 0));
		column[j] -= sum;
		for (int i = j + 1; i < qr->rows; i++)
			column[i] -= sum * element(qr, z, i, j);
	}
}

/* Checks that Q^H A is R. The error of each column is a few units of its norm for each
 * reflector. */
static void check_qr(const struct matrices *a, const struct matrices *qr, const struct matrices *tau)
{
	value column[128];

	for (int z = 0; z < BATCH; z++)
		for (int j = 0; j < a->columns; j++) {
			long double norm = 0;

			for (int i = 0; i < a->rows; i++) {
				column[i] = element(a, z, i, j);
				norm += size_of(column[i]);
			}
			reflect(qr, tau, z, column);
			for (int i = 0; i < a->rows; i++)
				near_value("geqrf", i, j, column[i], i <= j ? element(qr, z, i, j) : 0, type_unit(a->type) * 4 * (a->rows + 4) * norm);
		}
}

/* Checks that the residual of a least-squares solution is orthogonal to A's columns. */
static void check_least_squares(const struct matrices *a, const struct matrices *c, const struct matrices *x)
{
	for (int z = 0; z < BATCH; z++)
		for (int k = 0; k < c->columns; k++) {
			value left[128];
			long double sizes = 0;

			for (int i = 0; i < a->rows; i++) {
				left[i] = -element(c, z, i, k);
				sizes += size_of(left[i]);
				for (int j = 0; j < a->columns; j++) {
					left[i] += element(a, z, i, j) * element(x, z, j, k);
					sizes += size_of(element(a, z, i, j)) * size_of(element(x, z, j, k));
				}
			}
			for (int j = 0; j < a->columns; j++) {
				value sum = 0;

				for (int i = 0; i < a->rows; i++)
					sum += conjl(element(a, z, i, j)) * left[i];
				near_value("gels", j, k, sum, 0, type_unit(a->type) * 4 * (a->rows + 4) * sizes * a->rows);
			}
		}
}

static void qr(cudaDataType type, int m, int n)
{
	struct matrices a = matrices_of(type, 0, m, n), tau = matrices_of(type, 2, most(1, m < n ? m : n), 1), factors, taus;
	int info = -1;

	send(&a);
	OK(CALL(type, geqrfBatched, m, n, a.pointers, a.ld, tau.pointers, &info, BATCH));
	ASSERT(info == 0);
	factors = receive(&a);
	taus = receive(&tau);
	check_qr(&a, &factors, &taus);
	free(a.host);
	free(tau.host);
	free(factors.host);
	free(taus.host);
}

static void least_squares(cudaDataType type, int m, int n, int columns)
{
	struct matrices a = matrices_of(type, 0, m, n), c = matrices_of(type, 2, m, columns), x;
	int info = -1, infos[BATCH] = {-1, -1, -1}, *device_infos = on_device(5, infos, sizeof infos);

	send(&a);
	send(&c);
	OK(CALL(type, gelsBatched, CUBLAS_OP_N, m, n, columns, a.pointers, a.ld, c.pointers, c.ld, &info, device_infos, BATCH));
	from_device(infos, (CUdeviceptr)(uintptr_t)device_infos, sizeof infos);
	ASSERT(info == 0 && infos[0] == 0 && infos[1] == 0 && infos[2] == 0);
	x = receive(&c);
	check_least_squares(&a, &c, &x);
	free(a.host);
	free(c.host);
	free(x.host);
}

void test_qr(void)
{
	static const int sizes[][2] = {{1, 1}, {9, 4}, {40, 33}, {5, 12}};
	void *p = (void *)(uintptr_t)device_memory(0, 4096);
	int info;

	for (int t = 0; t < 4; t++)
		for (int s = 0; s < 4; s++) {
			qr(letter_types[t], sizes[s][0], sizes[s][1]);
			if (s < 3)
				least_squares(letter_types[t], sizes[s][0] + 1, sizes[s][1], 1 + s);
		}
	WANT(cublasSgelsBatched(handle(), CUBLAS_OP_N, 2, 3, 1, p, 2, p, 2, &info, NULL, 1), CUBLAS_STATUS_NOT_SUPPORTED);
	WANT(cublasSgelsBatched(handle(), CUBLAS_OP_N, 3, 2, -1, p, 3, p, 3, &info, NULL, 1), CUBLAS_STATUS_INVALID_VALUE);
	ASSERT(info == -4);
	WANT(cublasSgeqrfBatched(handle(), 3, 3, p, 2, p, &info, 1), CUBLAS_STATUS_INVALID_VALUE);
	ASSERT(info == -4);
}
