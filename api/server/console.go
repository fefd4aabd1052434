package server

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// OpenInstanceConsole connects the serial console to a websocket.
func (h *handlers) OpenInstanceConsole(ctx context.Context, r in[none, none]) (*bridge, error) {
	return h.bridge(ctx, r.ID, Runtime.Console)
}

// OpenInstanceScreen connects the screen to a websocket.
func (h *handlers) OpenInstanceScreen(ctx context.Context, r in[none, none]) (*bridge, error) {
	return h.bridge(ctx, r.ID, Runtime.Screen)
}

// write runs the bridge until one side closes it.
func (b bridge) write(w http.ResponseWriter) error { return b.run(w) }

// bridge returns a bridge to the connection that open opens to the instance.
func (h *handlers) bridge(ctx context.Context, ref string, open func(Runtime, context.Context, api.InstanceID) (io.ReadWriteCloser, error)) (*bridge, error) {
	b := &bridge{ctx: ctx, request: auth.Request(ctx)}
	since := h.opts.Store.Revision()
	id, runtime, by, err := h.reach(ctx, ref, true)
	if err == nil {
		b.leave, err = h.bridges.enter(id)
	}
	if err == nil {
		if err = b.open(h, by, since, func(ctx context.Context) (io.ReadWriteCloser, error) { return open(runtime, ctx, id) }); err != nil {
			b.leave()
		}
	}
	if err != nil && saysWhy(b.request) {
		return &bridge{ctx: b.ctx, request: b.request, failure: h.outward(err, b.request.Method, b.request.URL.Path, readerOf(ctx))}, nil
	}
	return b, err
}

// open opens the far side, which closes when the consent ends.
func (b *bridge) open(h *handlers, by consent, since int64, far func(context.Context) (io.ReadWriteCloser, error)) error {
	ctx, cancel, err := h.whileConsented(b.ctx, by, since)
	if err != nil {
		return err
	}
	leave := b.leave
	b.ctx, b.leave = ctx, func() { cancel(); leave() }
	b.far, err = far(ctx)
	return err
}

// saysWhy reports whether the client wants the reason for a refusal in the close frame,
// since pages in a browser cannot read the response to a refused upgrade.
func saysWhy(r *http.Request) bool {
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		if slices.ContainsFunc(strings.Split(line, ","), func(p string) bool { return strings.TrimSpace(p) == whyProtocol }) {
			return true
		}
	}
	return false
}
