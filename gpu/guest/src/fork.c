/* fork(): the child does not inherit the parent's session, and may call cuInit itself. */
#include "capture.h"
#include "context_storage.h"
#include "log.h"
#include "reference.h"
#include "registered.h"

static void forked(void)
{
	struct session *s = state_abandon();

	registered_abandon();
	logs_abandon();
	if (!s)
		return;
	session_abandon(s);
	objects_abandon();
	references_abandon();
	ranges_abandon();
	mappings_abandon();
	external_abandon();
	ipc_abandon();
	advice_abandon();
	kept_abandon();
	pools_abandon();
	primary_abandon();
	callbacks_abandon();
	output_abandon();
	context_storage_abandon();
	captures_abandon();
}

static void watch(void)
{
	pthread_atfork(registered_fork_begin, registered_fork_end, forked);
}

void forks_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
