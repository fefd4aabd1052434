package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// heartbeat is how often an idle watch sends an empty line, so that both ends and the
// proxies between them know that the connection is alive.
const heartbeat = 15 * time.Second

// sendTime limits how long sending one line may take.
const sendTime = 30 * time.Second

// Watch streams the changes that the caller may see.
func (h *handlers) Watch(ctx context.Context, r in[api.WatchParams, none]) (*watchResponse, error) {
	if r.Params.Since < 0 {
		return nil, api.Errorf(api.CodeInvalid, "must not be negative").At("since")
	}
	for _, k := range r.Params.Kind {
		if !k.Public() {
			return nil, api.Errorf(api.CodeInvalid, "unknown kind %.64q", k).At("kind")
		}
		if k == api.KindUsageRecord {
			return nil, api.Errorf(api.CodeInvalid, "usage records cannot be watched").At("kind").WithHint("list usage records instead")
		}
	}
	events, err := h.opts.Store.Watch(ctx, r.Params.Since)
	if err != nil {
		return nil, fmt.Errorf("watch the store: %w", err)
	}
	return &watchResponse{ctx, who(ctx), r.Params.Kind, events}, nil
}

type watchResponse struct {
	ctx    context.Context
	me     auth.Identity
	kinds  []api.Kind // none: all
	events <-chan api.Event
}

// write sends lines until the client disconnects, the store ends the watch, or the
// caller's key ends.
func (w watchResponse) write(out http.ResponseWriter) error {
	out.Header().Set("Content-Type", "application/x-ndjson")
	out.WriteHeader(http.StatusOK)
	control := http.NewResponseController(out)
	send := func(line []byte) error {
		// Not every ResponseWriter supports deadlines (tests).
		_ = control.SetWriteDeadline(time.Now().Add(sendTime))
		if _, err := out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("send a change: %w", err)
		}
		return control.Flush()
	}
	if err := control.Flush(); err != nil {
		return fmt.Errorf("start watch stream: %w", err)
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return nil
		case <-beat.C:
			if err := send(nil); err != nil {
				return err
			}
		case e, ok := <-w.events:
			if !ok {
				return nil // the client watches again from its last revision
			}
			ended := w.me.Ended(e) // before its credentials are removed
			if w.wants(e) {
				e.Object = delivered(shown(e.Object), readerOf(w.ctx))
				line, err := json.Marshal(e)
				if err != nil {
					return fmt.Errorf("encode a change: %w", err)
				}
				if err := send(line); err != nil {
					return err
				}
			}
			if ended {
				return nil
			}
		}
	}
}

func (w watchResponse) wants(e api.Event) bool {
	if e.Type == api.EventSync {
		return true
	}
	return (len(w.kinds) == 0 || slices.Contains(w.kinds, e.Object.Kind)) && w.me.Watches(e.Object.Kind) && w.me.Sees(e.Object)
}
