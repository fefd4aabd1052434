package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/controlplane/catalogue"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

const gib = 1 << 30

// bootstrap creates the first objects of a new cluster in one batch: an operator's key, a GPU
// pool, flavors, a price book and the app catalogue. The key's file is written first, so that a
// crash in between cannot leave a cluster to which nobody has access.
func bootstrap(ctx context.Context, s *store.Store, keyFile string, log *slog.Logger) error {
	// A founder that starts again while the others are off must not wait for them: if its own
	// store contains a key, that is sufficient.
	for _, ctx := range []context.Context{store.Stale(ctx), ctx} {
		page, err := s.List(ctx, api.ListQuery{Kind: api.KindAPIKey, Limit: 1})
		if err != nil {
			return fmt.Errorf("read the API keys: %w", err)
		}
		if len(page.Items) > 0 {
			return nil
		}
	}
	key, token := auth.NewAPIKey(api.Meta{Name: "first-operator"}, api.APIKeySpec{Role: api.RoleOperator})
	if err := atomicfile.WriteFile(keyFile, []byte(token+"\n"), 0o600); err != nil {
		return err
	}
	cmds := []api.Command{key,
		put(api.KindGPUPool, "default", api.GPUPoolSpec{Mode: "time-sliced"}),
		put(api.KindPriceBook, "default", pricebook.Default()),
		put(api.KindFlavor, "small", api.FlavorSpec{Vcpus: 2, MemoryBytes: 2 * gib, RootBytes: 10 * gib}),
		put(api.KindFlavor, "medium", api.FlavorSpec{Vcpus: 4, MemoryBytes: 8 * gib, RootBytes: 40 * gib}),
		put(api.KindFlavor, "large", api.FlavorSpec{Vcpus: 16, MemoryBytes: 64 * gib, RootBytes: 100 * gib}),
	}
	apps, err := catalogue.Apps()
	if err != nil {
		return fmt.Errorf("read the included apps: %w", err)
	}
	for _, a := range apps {
		cmds = append(cmds, put(api.KindApp, a.Meta.Name, a.Spec))
	}
	if _, err := s.Apply(ctx, api.Batch{ID: "bootstrap", At: time.Now().UTC(), Commands: cmds}); err != nil {
		return fmt.Errorf("create the first objects of the cluster: %w", err)
	}
	log.Info("created cluster, the operator's API key is in a file", "file", keyFile)
	return nil
}

func put(kind api.Kind, name string, spec any) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: kind, ID: api.NewID(kind, random(6)), Name: name, Data: api.Encode(spec)}
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // crypto/rand.Read never returns an error
	return b
}
