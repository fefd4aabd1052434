#include "call.h"

int ended(int result)
{
	if (result >= 700 && result < 800 && current) {
		acquire();
		object_find("libcuda", current, CONTEXT)->failed = true;
		release();
	}
	return result;
}

void in_context(const char *function)
{
	acquire();
	context_of(function);
	release();
}

void of_context(const char *function, u handle, enum kind kind)
{
	acquire();
	context_of(function);
	object_current(function, handle, kind);
	release();
}

void made(u handle, enum kind kind, unsigned int flags, u owner)
{
	acquire();
	struct object *o = object_new(handle, kind);
	o->flags = flags;
	o->owner = owner;
	release();
}

void ends(const char *function, u handle, enum kind kind)
{
	acquire();
	object_end(object_current(function, handle, kind));
	release();
}
