package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

const (
	maxBody     = 1 << 20 // limit of a JSON body
	requestTime = 30 * time.Second
)

// consistencyHeader is a request header: "stale" requests this node's state, even if it
// cannot reach the other nodes. The caller's key is then checked against that state
// too.
const consistencyHeader = "Basalt-Consistency"

// streams are the operations without a time limit.
var streams = map[string]bool{
	"Watch": true, "OpenInstanceConsole": true, "OpenInstanceScreen": true, "OpenInstanceShell": true, "PutImageContent": true, "ExecInInstance": true, "BackupCluster": true, "PutUpgradePackage": true,
}

// onNode are the operations that a particular node must answer: the node of an instance
// or GPU, or the node named in the request.
var onNode = map[string]api.Kind{"OpenInstanceConsole": api.KindInstance, "OpenInstanceScreen": api.KindInstance, "ExecInInstance": api.KindInstance, "GetInstanceConsoleLog": api.KindInstance,
	"GetInstanceSamples": api.KindInstance, "GetNodeLeaks": api.KindNode, "GetNodeSamples": api.KindNode,
	"GetGPUSamples": api.KindGPU, "ListGPUTenants": api.KindGPU}

// elsewhere returns the server of the node that must answer, or nil if it is this one.
// Invalid requests are reported by either node.
func (s *Server) elsewhere(ctx context.Context, op string, c echo.Context) http.Handler {
	kind := onNode[op]
	if s.opts.Elsewhere == nil || kind == "" {
		return nil
	}
	h := &handlers{s}
	q := c.QueryParams()
	o, err := h.find(ctx, kind, c.Param("id"), q.Get("organization"), q.Get("project"))
	if err != nil {
		return nil
	}
	node := nodeOf(o)
	if node == "" {
		return nil
	}
	return s.opts.Elsewhere(node)
}

// nodeOf returns the node of the object, or "" if there is none.
func nodeOf(o api.Object) api.NodeID {
	switch o.Kind {
	case api.KindNode:
		return api.NodeID(o.Meta.ID)
	case api.KindGPU:
		g, _ := api.Decode[api.GPU](o) // an invalid GPU has no node
		return g.Status.Node
	}
	in, _ := api.Decode[api.Instance](o)
	return in.Assignment.Node
}

// who returns the identity that the guard stored in the context. It panics without one,
// so that an operation that bypassed the guard cannot act.
func who(ctx context.Context) auth.Identity { return auth.Caller(ctx) }

// guard runs before an operation, and before the request's body is read.
func (s *Server) guard(op string) echo.MiddlewareFunc {
	allowed, known := auth.RolesFor(op)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			ctx := auth.WithRequest(c.Request().Context(), op, c.Request())
			if !known {
				return api.Errorf(api.CodeForbidden, "operation %s is not permitted for any role", op)
			}
			if c.Request().Header.Get(consistencyHeader) == "stale" && c.Request().Method == http.MethodGet && s.opts.Stale != nil {
				ctx = auth.WithStale(s.opts.Stale(ctx))
			}
			if allowed != auth.Everybody {
				since := s.opts.Store.Revision() // before the rights are checked
				id, err := s.auth.Identify(ctx, c.Request())
				if err != nil {
					return fmt.Errorf("identify the caller of %s: %w", op, err)
				}
				if !allowed.Has(id.Role) {
					return api.Errorf(api.CodeForbidden, "role %s may not perform this operation", id.Role).WithHint("requires role %s", allowed.Words())
				}
				if err := id.May(op); err != nil {
					return fmt.Errorf("authorize %s: %w", op, err)
				}
				if err := id.HasFactor(op); err != nil {
					return fmt.Errorf("authorize %s: %w", op, err)
				}
				if err := id.ComesFrom(auth.ClientAddress(c.Request())); err != nil {
					return fmt.Errorf("authorize %s: %w", op, err)
				}
				ctx = auth.WithIdentity(ctx, id)
				var cancel context.CancelFunc = func() {}
				switch {
				case op == "Watch": // it detects the end of the key itself, in the order of events
					ctx, cancel = s.untilExpiry(ctx, id)
				case streams[op]:
					if ctx, cancel, err = s.whileHolds(ctx, id, since); err != nil {
						return err
					}
				}
				defer cancel()
			}
			if there := s.elsewhere(ctx, op, c); there != nil {
				there.ServeHTTP(c.Response(), c.Request().WithContext(ctx))
				return nil
			}
			if !streams[op] {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, requestTime)
				defer cancel()
				// Not every ResponseWriter supports deadlines (tests); bodies are small
				// then.
				_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(requestTime)) // of the connection, which knows no other clock
			}
			r := c.Request().WithContext(ctx)
			if op != "PutImageContent" && op != "PutUpgradePackage" { // they have limits of their own
				r.Body = http.MaxBytesReader(c.Response(), r.Body, maxBody)
			}
			r.Body = sentBody{r.Body}
			c.SetRequest(r)
			return next(c)
		}
	}
}
