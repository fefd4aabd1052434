package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// learn fetches the names of objects of these kinds, so that tables show them instead of IDs.
// Objects that the key may not list keep their IDs.
func (a *App) learn(ctx context.Context, kinds []api.Kind) {
	for _, k := range a.kinds() {
		for _, want := range kinds {
			if k.name() != want {
				continue
			}
			for id, name := range k.names(ctx) {
				if a.names == nil {
					a.names = map[string]string{}
				}
				a.names[id] = name
			}
		}
	}
}

// named returns an object's name if it is known, else its ID.
func (a *App) named(id string) string { return cmp.Or(a.names[id], id) }

// namedResource returns the name to show for a usage record's resource. The names of root
// volumes contain their instance's ID.
func (a *App) namedResource(name, id string) string {
	if instance, _, ok := strings.Cut(name, "-root"); ok && strings.HasPrefix(instance, "ins-") {
		return a.named(instance) + "-root"
	}
	return cmp.Or(name, a.named(id))
}

// names returns names by ID. It fetches one page; other objects keep their IDs.
func (k *kind[T]) names(ctx context.Context) map[string]string {
	names := map[string]string{}
	for _, m := range k.metas(ctx, client.Query{}) {
		names[m.ID] = m.Name
	}
	return names
}

// metas returns the metadata of one page of objects, or nil when the key may not list them.
func (k *kind[T]) metas(ctx context.Context, q client.Query) []api.Meta {
	page, err := k.objects().Page(ctx, q)
	if err != nil {
		return nil
	}
	out := make([]api.Meta, len(page.Items))
	for i := range page.Items {
		out[i] = *api.MetaOf(&page.Items[i])
	}
	return out
}
