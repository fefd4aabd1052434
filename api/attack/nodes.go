package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// What a tenant reads must not name the nodes of the cluster: reasons why something waits
// and errors are written for operators, too.

func (w *world) nodeTries() []try {
	return []try{
		{"C11 nodes in what a tenant reads", "no name and no address of one in any text, although its volume waits for one", w.nodesRead},
		{"C11 nodes in refusals", "no name and no address of one in the error", w.nodesRefused},
		{"C11 nodes in changes", "no name and no address of one in any line of a watch", w.nodesWatched},
	}
}

// nodeMarks returns an expression for the names and addresses of the nodes.
func (w *world) nodeMarks(ctx context.Context) (*regexp.Regexp, error) {
	list, err := fetch[struct{ Items []api.Node }](ctx, w.wire, w.op, http.MethodGet, "/v1/nodes", nil)
	if err != nil {
		return nil, err
	}
	var words []string
	for _, n := range list.Items {
		words = append(words, regexp.QuoteMeta(n.Meta.Name))
		for _, p := range n.Spec.PeerAddresses {
			if host, _, err := net.SplitHostPort(p); err == nil {
				words = append(words, regexp.QuoteMeta(host))
			}
		}
	}
	if len(words) == 0 {
		return nil, leftOut("the cluster has no node")
	}
	return regexp.Compile(`(^|[^\w.-])(` + strings.Join(words, "|") + `)($|[^\w-])`)
}

// waiting creates a volume of the victim that no node has room for, and returns it when the
// operator reads the nodes' names in its reason.
func (w *world) waiting(ctx context.Context, marks *regexp.Regexp) (o object, err error) {
	m := withName(api.Meta{Organization: w.victim.Meta.ID, Project: w.web.Meta.ID}, w.canary+"-waits")
	if o, err = w.make(ctx, w.owner, "/v1/volumes", m.Name, m, api.VolumeSpec{SizeBytes: api.MaxVolumeBytes}); err != nil {
		return o, fmt.Errorf("create a volume that does not fit: %w", err)
	}
	return o, within(ctx, time.Minute, "the operator reads why the volume waits, with the node", func() (bool, error) {
		a, err := w.ask(ctx, w.op, http.MethodGet, o.at(), nil)
		return marks.Match(a.raw), err
	})
}

func (w *world) nodesRead(ctx context.Context) error {
	marks, err := w.nodeMarks(ctx)
	if err != nil {
		return err
	}
	o, err := w.waiting(ctx, marks)
	if err != nil {
		return err
	}
	all, err := operations()
	if err != nil {
		return err
	}
	paths := []string{o.at()}
	for _, op := range all {
		collection, _, one := strings.Cut(op.path, "/{id}")
		switch {
		case op.method != http.MethodGet || op.id == "Watch":
		case !one && !strings.Contains(op.path, "{"):
			paths = append(paths, op.path)
		case one && !strings.Contains(strings.TrimPrefix(op.path, collection+"/{id}"), "{"):
			for _, thing := range w.things {
				if thing.path == collection {
					paths = append(paths, strings.Replace(op.path, "{id}", thing.Meta.ID, 1))
				}
			}
		}
	}
	return each(paths, func(path string) error {
		a, err := w.ask(ctx, w.owner, http.MethodGet, path, nil)
		if err == nil {
			err = named(marks, a.raw)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return err
	})
}

// named returns an error if raw names a node.
func named(marks *regexp.Regexp, raw []byte) error {
	if at := marks.FindIndex(raw); at != nil {
		return fmt.Errorf("the answer names a node: %s", raw[max(0, at[0]-100):min(len(raw), at[1]+100)])
	}
	return nil
}

func (w *world) nodesRefused(ctx context.Context) error {
	marks, err := w.nodeMarks(ctx)
	if err != nil {
		return err
	}
	f, err := w.make(ctx, w.op, "/v1/flavors", w.tag+"-vast", api.Meta{Name: w.tag + "-vast"}, api.FlavorSpec{Vcpus: api.MaxVCPUs, MemoryBytes: api.MaxMemoryBytes, RootBytes: 1 << 30})
	if err != nil {
		return err
	}
	m := withName(api.Meta{Organization: w.victim.Meta.ID, Project: w.web.Meta.ID}, w.canary+"-vast")
	spec := map[string]any{"flavor": f.Meta.ID, "image": w.canary, "whenFull": api.WhenFullRefuse}
	for _, path := range []string{"/v1/instances", "/v1/instances?dryRun=all"} {
		a, err := w.ask(ctx, w.owner, http.MethodPost, path, body{m, spec})
		if err != nil {
			return err
		}
		if a.Code != api.CodeNoCapacity {
			return fmt.Errorf("%s answered %s, want code %s", path, a, api.CodeNoCapacity)
		}
		if err := named(marks, a.raw); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) nodesWatched(ctx context.Context) error {
	marks, err := w.nodeMarks(ctx)
	if err != nil {
		return err
	}
	var wrong error
	err = w.watch(ctx, w.owner, "since=0", func(line []byte) bool {
		var e api.Event
		if wrong = json.Unmarshal(line, &e); wrong == nil {
			wrong = named(marks, line)
		}
		return wrong == nil && e.Type != api.EventSync
	})
	if wrong != nil {
		return wrong
	}
	return err
}
