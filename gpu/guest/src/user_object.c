/* User objects: resources of the program whose destructor is called when no graph needs them
 * any more. It runs in the thread of host functions. */
#include <limits.h>
#include <stdlib.h>

#include "graph.h"

/* Guards user objects. It is acquired after graph_lock, which guards the lists of graphs. */
static pthread_mutex_t user_lock = PTHREAD_MUTEX_INITIALIZER;

#define USER_LOCKED(call)                                                                                              \
	do {                                                                                                           \
		int user_err;                                                                                          \
		SESSION(user_session);                                                                                 \
		(void)user_session;                                                                                    \
		pthread_mutex_lock(&user_lock);                                                                        \
		user_err = (call);                                                                                     \
		pthread_mutex_unlock(&user_lock);                                                                      \
		return user_err;                                                                                       \
	} while (0)

void user_objects_abandon(void)
{
	pthread_mutex_init(&user_lock, NULL);
}

struct user_object {
	struct object o;
	unsigned int count; /* number of references, of the program and of graphs */
	void *data;
	CUhostFn destroy;
};

struct destruction {
	CUhostFn destroy;
	void *data;
};

static void destruct(void *arg, int err)
{
	struct destruction *d = arg;

	(void)err;
	d->destroy(d->data);
	free(d);
}

/* Releases n references. The last one destroys the object. */
static void release(struct user_object *u, unsigned int n)
{
	struct destruction *d;

	u->count -= n;
	if (u->count)
		return;
	if ((d = malloc(sizeof *d)) != NULL) {
		*d = (struct destruction){u->destroy, u->data};
		if (callbacks_after(0, destruct, d) != 0)
			destruct(d, 0);
	}
	(void)object_remove(u->o.id, KIND_USER_OBJECT);
}

void user_references_free(struct user_reference *r)
{
	pthread_mutex_lock(&user_lock);
	for (struct user_reference *next; r; r = next) {
		next = r->next;
		release(r->object, r->count);
		free(r);
	}
	pthread_mutex_unlock(&user_lock);
}

static struct user_object *user_find(CUuserObject h)
{
	struct user_object *u = object_get(h, KIND_USER_OBJECT);

	object_put(u);
	return u;
}

static int retain(struct user_object *u, unsigned int n)
{
	if (!u || n == 0 || n > INT_MAX || u->count > INT_MAX - n)
		return CUDA_ERROR_INVALID_VALUE;
	u->count += n;
	return 0;
}

/* Adds n references to a graph's list. They are already counted. */
static int add_references(struct user_reference **list, struct user_object *u, unsigned int n)
{
	struct user_reference *r = *list;

	while (r && r->object != u)
		r = r->next;
	if (!r) {
		if (!(r = calloc(1, sizeof *r)))
			return CUDA_ERROR_OUT_OF_MEMORY;
		r->object = u;
		r->next = *list;
		*list = r;
	}
	r->count += n;
	return 0;
}

int user_references_clone(const struct user_reference *r, struct user_reference **out)
{
	int err = 0;

	pthread_mutex_lock(&user_lock);
	for (; r && !err; r = r->next) {
		if ((err = retain(r->object, r->count)) != 0)
			break;
		if ((err = add_references(out, r->object, r->count)) != 0)
			release(r->object, r->count);
	}
	pthread_mutex_unlock(&user_lock);
	return err;
}

static int create(CUuserObject *out, void *data, CUhostFn destroy, unsigned int count, unsigned int flags)
{
	struct user_object *u;

	if (!out || !destroy || count == 0 || count > INT_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(u = object_new(sizeof *u, KIND_USER_OBJECT, object_ids(1), 0)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	u->count = count;
	u->data = data;
	u->destroy = destroy;
	object_add(u);
	*out = handle_of(u->o.id);
	return 0;
}

CUDA_API CUresult cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount,
				     unsigned int flags)
{
	USER_LOCKED(create(object_out, ptr, destroy, initialRefcount, flags));
}

CUDA_API CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	USER_LOCKED(retain(user_find(object), count));
}

static int give_up(CUuserObject h, unsigned int n)
{
	struct user_object *u = user_find(h);

	if (!u || n == 0 || n > u->count)
		return CUDA_ERROR_INVALID_VALUE;
	release(u, n);
	return 0;
}

CUDA_API CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	USER_LOCKED(give_up(object, count));
}

static int add(struct user_reference **list, CUuserObject object, unsigned int n, bool move)
{
	struct user_object *u = user_find(object);
	int err;

	if (!u || n == 0 || n > INT_MAX || (move && n > u->count))
		return CUDA_ERROR_INVALID_VALUE;
	if (!move)
		TRY(retain(u, n));
	if ((err = add_references(list, u, n)) != 0 && !move)
		release(u, n);
	return err;
}

int user_references_add(struct user_reference **list, CUuserObject object, unsigned int n, bool move)
{
	USER_LOCKED(add(list, object, n, move));
}

static int remove_references(struct user_reference **list, CUuserObject object, unsigned int n)
{
	struct user_object *u = user_find(object);

	for (struct user_reference **at = u && n ? list : NULL; at && *at; at = &(*at)->next) {
		struct user_reference *r = *at;

		if (r->object != u)
			continue;
		if (r->count < n)
			return CUDA_ERROR_INVALID_VALUE;
		if ((r->count -= n) == 0) {
			*at = r->next;
			free(r);
		}
		release(u, n);
		return 0;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

int user_references_take(struct user_reference **list, CUuserObject object, unsigned int n)
{
	USER_LOCKED(remove_references(list, object, n));
}
