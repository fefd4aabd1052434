/* What capture.c and capture_api.c share. All is guarded by graph_lock. */
#ifndef BASALT_CAPTURE_STATE_H
#define BASALT_CAPTURE_STATE_H

#include "capture.h"
#include "graph.h"

/* Handles of nodes: a program may destroy one meanwhile. */
struct handle_list {
	CUgraphNode *at;
	size_t n, room;
};

struct capture {
	struct capture *next;
	uint64_t id, origin; /* origin: the stream in which it began */
	struct graph *graph;
	bool given; /* the graph was the program's before */
	CUstreamCaptureMode mode;
	const void *thread; /* that began it */
	bool invalid;
};

/* A stream that takes part in a capture. */
struct captured_stream {
	struct captured_stream *next;
	struct capture *c;
	uint64_t stream, context;
	bool blocking;
	struct handle_list deps; /* what its next node depends on */
	CUgraphEdgeData *edges;  /* as many, for the program to look at */
};

extern struct capture *captures;
extern struct captured_stream *captured_streams;

int handles_add(struct handle_list *l, CUgraphNode h);
struct captured_stream *captured_find(uint64_t stream);
/* A blocking stream of the context that captures: the legacy stream waits for it. */
struct captured_stream *captured_blocking(uint64_t context);
int captured_join(struct capture *c, uint64_t stream, uint64_t context, bool blocking, struct captured_stream **out);
/* Ends a capture: its streams leave it. The graph stays. */
void capture_end(struct capture *c);
/* This thread, as captures name it. */
const void *capture_thread(void);

#endif
