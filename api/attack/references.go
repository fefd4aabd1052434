package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

func (w *world) referenceTries() []try {
	return []try{
		{"C7 a project is deleted while something is made in it", "nothing is left in one that is gone", func(ctx context.Context) error {
			return w.race(ctx, "/v1/projects", func(project object) (string, body) {
				return "/v1/security-groups", body{api.Meta{Name: "in", Organization: w.foe.Meta.ID, Project: project.Meta.ID}, api.SecurityGroupSpec{}}
			})
		}},
		{"C7 a security group is deleted while another begins to refer to it", "no reference leads nowhere", func(ctx context.Context) error {
			return w.race(ctx, "/v1/security-groups", func(group object) (string, body) {
				spec := map[string]any{"rules": []any{map[string]any{"direction": "ingress", "protocol": "tcp", "ports": "80", "group": group.Meta.ID}}}
				return "/v1/security-groups", body{api.Meta{Name: "refers-" + group.Meta.Name, Organization: w.foe.Meta.ID, Project: w.den.Meta.ID}, spec}
			})
		}},
		{"C7 an object names another tenant's", "refused, as if it were not there", w.foreignReferences},
	}
}

// race deletes an object and concurrently creates one that refers to it, many times.
func (w *world) race(ctx context.Context, path string, refers func(object) (string, body)) error {
	const rounds = 15
	both := 0
	for range rounds {
		m := api.Meta{Organization: w.foe.Meta.ID}
		if path != "/v1/projects" {
			m.Project = w.den.Meta.ID
		}
		target, err := w.make(ctx, w.admin, path, w.tag+"-"+word(), m, map[string]any{})
		if err != nil {
			return err
		}
		var gone, made answer
		var errs [2]error
		var at sync.WaitGroup
		at.Go(func() { gone, errs[0] = w.ask(ctx, w.admin, http.MethodDelete, target.at(), nil) })
		to, content := refers(target)
		at.Go(func() { made, errs[1] = w.ask(ctx, w.admin, http.MethodPost, to, content) })
		at.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		if gone.ok() == made.ok() {
			both++
		}
		if made.ok() {
			o, err := w.taken(made, to)
			if err != nil {
				return err
			}
			if err := errors.Join(w.drop(ctx, o), w.drop(ctx, target)); err != nil {
				return err
			}
		}
	}
	if both > 0 {
		return fmt.Errorf("in %d of %d rounds both were done, or neither", both, rounds)
	}
	return nil
}

func (w *world) foreignReferences(ctx context.Context) error {
	den := api.Meta{Organization: w.foe.Meta.ID, Project: w.den.Meta.ID}
	return each(w.things, func(o object) error {
		var path string
		var spec any
		switch o.Kind {
		case "Image":
			path, spec = "/v1/volumes", map[string]any{"image": o.Meta.ID, "sizeBytes": mib}
		case "Volume":
			path, spec = "/v1/snapshots", map[string]any{"volume": o.Meta.ID}
		case "Snapshot":
			path, spec = "/v1/volumes", map[string]any{"snapshot": o.Meta.ID}
		case "Network":
			path, spec = "/v1/load-balancers", map[string]any{"network": o.Meta.ID, "protocol": "tcp", "port": 80}
		case "SecurityGroup":
			path, spec = "/v1/security-groups", map[string]any{"rules": []any{map[string]any{"direction": "ingress", "protocol": "tcp", "ports": "80", "group": o.Meta.ID}}}
		default:
			return nil
		}
		return w.refused(ctx, w.member, http.MethodPost, path, body{withName(den, w.tag+"-ref"), spec}, api.CodeInvalid, api.CodeNotFound)
	})
}
