/* Data that capture.c and capture_api.c share. graph_lock guards all of it. */
#ifndef BASALT_CAPTURE_STATE_H
#define BASALT_CAPTURE_STATE_H

#include "capture.h"
#include "graph.h"

/* Handles of nodes, not pointers, because a program may destroy a node at any time. */
struct handle_list {
	CUgraphNode *at;
	size_t n, room;
};

struct capture {
	struct capture *next;
	uint64_t id, origin; /* origin: ID of the stream in which it began */
	struct graph *graph;
	bool given; /* the program gave the graph */
	CUstreamCaptureMode mode;
	const void *thread; /* the thread that began it */
	bool invalid;
};

/* A stream that participates in a capture. */
struct captured_stream {
	struct captured_stream *next;
	struct capture *c;
	uint64_t stream, context;
	bool blocking;
	struct handle_list deps; /* what its next node depends on */
	CUgraphEdgeData *edges;  /* one for each of deps, for queries of the program */
};

extern struct capture *captures;
extern struct captured_stream *captured_streams;

int handles_add(struct handle_list *l, CUgraphNode h);
struct captured_stream *captured_find(uint64_t stream);
/* Returns a capturing stream of the context that is blocking, so that the legacy stream waits
 * for it, or NULL. */
struct captured_stream *captured_blocking(uint64_t context);
int captured_join(struct capture *c, uint64_t stream, uint64_t context, bool blocking, struct captured_stream **out);
/* Ends a capture and removes its streams from it. It does not destroy the graph. */
void capture_end(struct capture *c);
/* Returns a pointer that identifies this thread. */
const void *capture_thread(void);

#endif
